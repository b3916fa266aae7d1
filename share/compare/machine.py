"""The machine at hand and how a command is run on it."""

import os
import platform
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

STOP_GRACE_S = 10
INSTALL_TIMEOUT_S = 1800
COMPLAINT = re.compile(r"error|cannot|unable|no such|not (found|created|available)", re.IGNORECASE)


class Unavailable(Exception):
    """A contestant cannot be had, built or run here; the text says why."""


def writable_folder(path):
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"cannot make the folder {path}: {error.strerror}") from None
    if not os.access(path, os.W_OK):
        raise Unavailable(f"cannot write to {path}")
    return path


@dataclass(frozen=True)
class Machine:
    cpu: str
    cores: tuple  # one logical CPU of every physical core this process may use
    kernel: str
    load: float  # runnable processes in the last minute, before we started any

    @property
    def slug(self):
        return re.sub(r"[^a-z0-9]+", "-", self.cpu.lower()).strip("-")


def read_cpu():
    """The processor's name; with family and model where a virtual machine leaves out which of its make it is."""
    try:
        text = Path("/proc/cpuinfo").read_text()
        name, family, model = (
            re.search(rf"^{key}\s*:\s*(.+)", text, re.MULTILINE).group(1).strip()
            for key in ("model name", "cpu family", "model")
        )
    except (OSError, AttributeError):
        return platform.machine()
    return name if re.search(r"\d", name) else f"{name} (family {family}, model {model})"


def read_machine():
    return Machine(
        cpu=read_cpu(),
        cores=physical_cores(),
        kernel=platform.release().partition("-")[0],
        load=os.getloadavg()[0],
    )


def physical_cores():
    first_cpu_of = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        topology = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology")
        try:
            core = tuple((topology / name).read_text() for name in ("physical_package_id", "core_id"))
        except OSError:
            core = cpu
        first_cpu_of.setdefault(core, cpu)
    return tuple(first_cpu_of.values())


def child_environment():
    """One thread per rank, and what Open MPI wants to hear from root."""
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    if os.geteuid() == 0:
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return environment


def launch(commands, timeout_s):
    """Starts the commands together, waits for all, returns the output of the first; raises Unavailable if any fails."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        processes = []
        try:
            for command in commands:
                processes.append(
                    subprocess.Popen(
                        command,
                        stdin=subprocess.DEVNULL,
                        stdout=errors if processes else output,
                        stderr=errors,
                        env=child_environment(),
                        start_new_session=True,
                    )
                )
            deadline = time.monotonic() + timeout_s
            codes = [process.wait(max(0.1, deadline - time.monotonic())) for process in processes]
        except subprocess.TimeoutExpired:
            raise Unavailable(f"no end after {timeout_s:.0f} s: {shlex.join(commands[0])}") from None
        except OSError as error:
            raise Unavailable(f"cannot start {commands[0][0]}: {error.strerror}") from None
        finally:
            stop(processes)
        output.seek(0)
        errors.seek(0)
        text, error_text = output.read(), errors.read()
    if any(codes):
        raise Unavailable(f"exit code {next(filter(None, codes))}: {reason_in(error_text or text)}")
    return text


def make_python(cache):
    """An interpreter with the peers that are written in Python, from PyPI."""
    folder = cache / "wheel_torch"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        print("installing the peers: torch, h5py, pillow ...", file=sys.stderr, flush=True)
        launch([[sys.executable, "-m", "venv", str(folder)]], INSTALL_TIMEOUT_S)
        launch([[str(python), "-m", "pip", "install", "--quiet", "torch", "h5py", "pillow", "numpy"]], INSTALL_TIMEOUT_S)
        (folder / "complete").touch()
    return str(python)


def stop(processes):
    """Ends what still runs of the processes that launch() started; a launcher asked to end takes its ranks along."""
    running = [process for process in processes if process.poll() is None]
    for process in running:
        process.terminate()
    for process in running:
        try:
            process.wait(STOP_GRACE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def reason_in(text):
    """The line of a failed command's output that says most: the first that complains, else the last."""
    lines = [line.strip() for line in text.splitlines() if line.strip(" -*=") and not line.startswith("WARNING")]
    telling = [line for line in lines if COMPLAINT.search(line)]
    return (telling or lines[-1:] or ["no message"])[0][:200]
