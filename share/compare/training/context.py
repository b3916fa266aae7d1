"""What all comparisons of this folder share: the two programs, a folder to work in, rows and goals of the report."""

import json
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

from machine import launch

HERE = Path(__file__).resolve().parent
TIMEOUT_S = 1800


def progress(text):
    print(text, file=sys.stderr, flush=True)


@dataclass
class Context:
    lockstep: str
    python: str  # an interpreter with PyTorch, or None where a part can do without
    work: Path
    mnist: Path  # a folder with real digits in MNIST's format, or None
    cores: tuple
    tcmalloc: str  # path of the library, or None
    repeats: int
    quick: bool
    isa: str = "default"  # the instructions that both sides are held to
    works: tuple = ()  # names of what speed is measured of
    rows: list = field(default_factory=list)
    goals: list = field(default_factory=list)
    notes: list = field(default_factory=list)

    def shard(self, *words):
        return launch([[self.lockstep, "shard", *map(str, words)]], TIMEOUT_S)

    def make_set(self, name, *words):
        """A set of shards in the work folder, made once: `lockstep shard WORDS --out FOLDER`."""
        folder = self.work / name
        if not folder.exists():
            self.shard(*words, "--out", folder)
        return folder

    def train(self, recipe, *words, ranks=1, timeout_s=TIMEOUT_S):
        """`lockstep train`, one thread per rank, a single rank on the first core: (last line of its log, output)."""
        run_dir = self.work / "run"
        shutil.rmtree(run_dir, ignore_errors=True)
        command = [self.lockstep, "train", recipe, "--run-dir", run_dir, "--threads", 1, "--loader-threads", 0]
        command += ["--nproc", ranks] if ranks > 1 else []
        prefix = ["taskset", "-c", self.cores[0]] if ranks == 1 else []
        text = launch([list(map(str, [*prefix, *command, *words]))], timeout_s)
        lines = (run_dir / "log.jsonl").read_text().splitlines()
        return json.loads(lines[-1]), text

    def peer(self, script, *words, prefix=(), timeout_s=TIMEOUT_S):
        return json.loads(launch([[*prefix, self.python, str(HERE / script), *map(str, words)]], timeout_s))

    def peer_case(self, script, word, case):
        path = self.work / "case.json"
        path.write_text(json.dumps(case, default=str))
        return self.peer(script, word, path)

    def row(self, table, **figures):
        self.rows.append({"table": table, **figures})
        progress(f"{table}: " + ", ".join(f"{key} {figure(value)}" for key, value in figures.items()))

    def goal(self, text, measured, is_met):
        self.goals.append({"goal": text, "measured": measured, "verdict": "met" if is_met else "NOT met"})

    def unavailable(self, text, reason):
        self.goals.append({"goal": text, "measured": f"not available: {reason}", "verdict": "not measured"})


def figure(value):
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def flags_of(optimizer):
    """{"optimizer": "sgd", "lr": 0.1, "weight_decay": 0} as flags of lockstep."""
    words = []
    for key, value in optimizer.items():
        words += ["--" + key.replace("_", "-"), repr(value) if isinstance(value, float) else value]
    return words
