"""How well the tutorial's network learns real digits, and whether the number of ranks can be told from the result."""

import gzip
import json
import re
import shutil
import statistics
import struct

from context import HERE, TIMEOUT_S
from machine import Unavailable, launch

N_TRAIN, N_VAL = 8000, 2000
WITHIN_PERCENT = 0.3
DIGEST = re.compile(r"digest\s+weights (\w+) losses (\w+)")


def read_idx(folder, kind):
    """(header without the number of items, bytes of an item, items) of the 10,000 digits of MNIST's test set."""
    found = [*folder.glob(f"t10k-{kind}-idx?-ubyte*")]
    if not found:
        raise Unavailable(f"no t10k-{kind}-idx?-ubyte in {folder}")
    raw = gzip.decompress(found[0].read_bytes()) if found[0].suffix == ".gz" else found[0].read_bytes()
    n_dimensions = raw[3]
    n_items = struct.unpack(">I", raw[4:8])[0]
    begin = 4 + 4 * n_dimensions
    return raw[:4], raw[8:begin], raw[begin:], (len(raw) - begin) // n_items


def make_digits(context):
    """The first 8,000 of the test set's digits to train on, the last 2,000 to evaluate, as a set of shards."""
    if context.mnist is None:
        raise Unavailable("--mnist names a folder with t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, plain or .gz")
    files = context.work / "mnist-files"
    files.mkdir(exist_ok=True)
    for kind in ("images", "labels"):
        magic, shape, items, n_bytes = read_idx(context.mnist, kind)
        parts = {"train": items[: N_TRAIN * n_bytes], "t10k": items[-N_VAL * n_bytes :]}
        for name, part in parts.items():
            header = magic + struct.pack(">I", len(part) // n_bytes) + shape
            (files / f"{name}-{kind}-idx{magic[3]}-ubyte").write_bytes(header + part)
    return context.make_set("mnist", "import", "mnist", files)


def compare_accuracy(context, digits):
    epochs, seeds = (2, (1, 2)) if context.quick else (14, (1, 2, 3, 4, 5))
    ours, theirs = [], []
    for seed in seeds:  # side by side, each on a core of its own where there are two: this is no timing
        run_dir = context.work / f"mnist-run-{seed}"
        shutil.rmtree(run_dir, ignore_errors=True)
        same = ["--data", digits, "--seed", seed, "--epochs", epochs]
        peer = ["taskset", "-c", context.cores[0], context.python, HERE / "torch_mnist.py", *same]
        mine = ["taskset", "-c", context.cores[-1], context.lockstep, "train", "mnist_cnn", *same, "--run-dir", run_dir]
        mine += ["--threads", 1, "--loader-threads", 0, "--evaluate-every", 0]
        commands = [peer, mine]
        theirs.append(json.loads(launch([list(map(str, command)) for command in commands], TIMEOUT_S))["top1_percent"])
        ours.append(json.loads((run_dir / "log.jsonl").read_text().splitlines()[-1])["evaluation"]["top1_percent"])
        context.row("accuracy", what="MNIST's digits", seed=seed, ours_percent=ours[-1], peer_percent=theirs[-1])
    means = statistics.mean(ours), statistics.mean(theirs)
    spreads = statistics.stdev(ours), statistics.stdev(theirs)
    measured = f"{means[0]:.2f} % ± {spreads[0]:.2f}, PyTorch {means[1]:.2f} % ± {spreads[1]:.2f}"
    text = f"{N_TRAIN} real digits, {epochs} epochs, {len(seeds)} seeds: PyTorch's accuracy within 0.3 %"
    context.goal(text, measured, means[0] >= means[1] - WITHIN_PERCENT)


def compare_digests(context, what, recipe, words):
    """One digest of weights and losses for 1, 2 and 4 ranks."""
    digests = {}
    for ranks in (1, 2, 4):
        _, text = context.train(recipe, "--deterministic", "--max-steps", 50, "--digest", *words, ranks=ranks)
        digests[ranks] = " ".join(DIGEST.search(text).groups())
        context.row("deterministic", what=what, ranks=ranks, digest=digests[ranks])
    n = len(set(digests.values()))
    text = f"{what}, 50 steps: --deterministic bit-equal at 1, 2 and 4 ranks"
    context.goal(text, f"{n} digest{'s' if n > 1 else ''} of weights and losses", n == 1)


def run(context):
    text = "real digits: PyTorch's accuracy within 0.3 %"
    try:
        compare_accuracy(context, make_digits(context))
    except Unavailable as reason:
        context.unavailable(text, reason)
    compare_digests(context, "MNIST CNN", "digits", [])
    words = ["--image-size", 64, "--batch", 64, "--bn-group", 16, "--synthetic-steps", 50]
    compare_digests(context, "ResNet-18@64", "resnet50_synthetic", ["--model", "resnet18", *words])
