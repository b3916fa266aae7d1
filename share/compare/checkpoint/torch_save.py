"""Times of PyTorch saving and loading the tensors of a checkpoint: torch_save.py CASE, a JSON file with index, folder,
repeats and threads. Prints JSON: seconds of every repeat by what was done."""

import json
import logging
import os
import shutil
import sys
import time
import warnings
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)


def tensors_of(index):
    """Random values in the shapes that a checkpoint's index.json names."""
    pieces = [piece for file in json.loads(Path(index).read_text())["files"] for piece in file["pieces"]]
    return {piece["tensor"]: torch.randn(piece["shape"]) for piece in pieces}


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def save_plainly(state, path):
    with open(path, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())


def save_distributed(state, path, threads):
    writer = dcp.FileSystemWriter(path, single_file_per_rank=True, sync_files=True, thread_count=threads)
    dcp.save(state, storage_writer=writer)


def main():
    case = json.loads(Path(sys.argv[1]).read_text())
    torch.set_num_threads(1)
    state = tensors_of(case["index"])
    target = {name: torch.empty_like(tensor) for name, tensor in state.items()}
    work = Path(case["folder"]) / "torch"
    times = {}

    def add(name, work):
        times.setdefault(name, []).append(timed(work))

    try:
        for _ in range(case["repeats"]):
            work.mkdir()
            add("torch.save", lambda: save_plainly(state, work / "state.pt"))
            add("torch.load", lambda: torch.load(work / "state.pt", weights_only=True))
            shutil.rmtree(work)
            for threads in case["threads"]:
                work.mkdir()
                name = f"distributed.checkpoint, {threads} thread{'s' if threads > 1 else ''}"
                add(f"{name}: save", lambda: save_distributed(state, work / "dcp", threads))
                add(f"{name}: load", lambda: dcp.load(target, checkpoint_id=work / "dcp"))
                shutil.rmtree(work)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(json.dumps({"version": torch.__version__, "times": times}))


if __name__ == "__main__":
    main()
