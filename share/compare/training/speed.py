"""Training throughput beside PyTorch's best configuration, with one and two ranks of one thread each."""

import itertools
import json
import statistics
import time

from context import HERE, TIMEOUT_S, figure, flags_of
from machine import Unavailable, launch

SGD = {"optimizer": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 1e-5}
ADADELTA = {"optimizer": "adadelta", "lr": 1.0}
ADAMW = {"optimizer": "adamw", "lr": 1e-3, "weight_decay": 0.01}
PLAIN_SGD = {"optimizer": "sgd", "lr": 1e-3}


def work(model, recipe, batch, optimizer, steps, goals, bf16=False, size=0, classes=10):
    """`goals`: how many times PyTorch's best is wanted, by ranks."""
    keys = {"model": model, "recipe": recipe, "batch": batch, "optimizer": optimizer, "steps": steps, "goals": goals}
    return keys | {"bf16": bf16, "size": size, "classes": classes}


def resnet(model, size, batch, classes, steps, goal, bf16):
    return work(model, "resnet50_synthetic", batch, SGD, steps, {1: goal, 2: goal}, bf16, size, classes)


WORKS = {
    "ResNet-18@64, f32": resnet("resnet18", 64, 64, 200, 20, 1.35, False),
    "ResNet-18@64, bf16": resnet("resnet18", 64, 64, 200, 30, 1.6, True),
    "ResNet-50@224, f32": resnet("resnet50", 224, 8, 1000, 6, 1.75, False),
    "ResNet-50@224, bf16": resnet("resnet50", 224, 8, 1000, 10, 1.45, True),
    "MNIST CNN": work("mnist_cnn", "digits", 64, ADADELTA, 150, {2: 2.0}, size=28),
    "MovieLens": work("movielens", "movielens", 256, ADAMW, 600, {1: 1.2, 2: 8.0}),
    "toy": work("toy", "toy", 32, PLAIN_SGD, 5000, {1: 5.0, 2: 20.0}),
}
# Goals of forced instruction sets, which replace those above: by work and ranks. Nothing else is measured there but bf16.
FORCED_GOALS = {
    "avx2": {
        ("ResNet-18@64, f32", 2): 1.3,
        ("ResNet-50@224, f32", 2): 1.4,
        ("MNIST CNN", 2): 2.0,
        ("MovieLens", 2): 8.0,
        ("toy", 2): 20.0,
    },
    "avx512": {},
}
IMAGE_MODELS = ("resnet18", "resnet50", "mnist_cnn")


def configurations(context, what):
    """PyTorch's, by name: layouts, the fused and foreach optimizers, tcmalloc, torch.compile."""
    work = WORKS[what]
    fast = {"foreach": True} if work["optimizer"]["optimizer"] == "adadelta" else {"fused": True}

    is_image_model = work["model"] in IMAGE_MODELS

    def config(name, options=fast, channels_last=is_image_model, tcmalloc=bool(context.tcmalloc), compile=False):
        words = [name] + (["channels last"] if channels_last else []) + (["tcmalloc"] if tcmalloc else [])
        words += [*options]
        keys = {"options": options, "channels_last": channels_last, "compile": compile, "tcmalloc": tcmalloc}
        return ", ".join(words), keys

    configs = [config("eager"), config("compile", compile=True), config("eager", options={})]
    if context.tcmalloc:
        configs.append(config("eager", tcmalloc=False))
    if is_image_model:
        configs.append(config("eager", channels_last=False))
    if context.quick:
        configs = configs[:1]
    return dict(configs)


def samples_per_s(work, ranks, step_s):
    return work["batch"] * ranks / step_s


def goal_of(context, what, ranks):
    if context.isa == "default":
        return WORKS[what]["goals"].get(ranks)
    return FORCED_GOALS[context.isa].get((what, ranks))


def n_steps(context, what):
    return max(3, WORKS[what]["steps"] // (4 if context.quick else 1))


def time_peer(context, what, config, ranks):
    work = WORKS[what]
    meet = context.work / "meet"
    meet.unlink(missing_ok=True)
    words = ["--work", json.dumps(work), "--config", json.dumps(config), "--ranks", ranks]
    words += ["--steps", n_steps(context, what)]
    environment = ["env", f"TORCHINDUCTOR_CACHE_DIR={context.work / 'inductor'}"]
    environment += [f"LD_PRELOAD={context.tcmalloc}"] if config["tcmalloc"] else []
    commands = []
    for rank in range(ranks):
        pinned = ["taskset", "-c", context.cores[rank]]
        script = [context.python, HERE / "torch_speed.py", *words, "--rank", rank, "--meet", meet]
        commands.append(list(map(str, [*environment, *pinned, *script])))
    return json.loads(launch(commands, TIMEOUT_S))


def words_of(context, what, ranks, data=(), bn_group=0, steps=0):
    """`data`: flags that replace synthetic batches; `bn_group`: another than the rank's batch."""
    work = WORKS[what]
    batch, steps = work["batch"] * ranks, steps or n_steps(context, what) + 5  # the log leaves out the first 5
    words = [*(data or ("--synthetic", "--synthetic-steps", steps)), "--max-steps", steps]
    words += ["--batch", batch, "--epochs", 1, "--val-split", ""]
    words += ["--precision", "bf16" if work["bf16"] else "f32", *flags_of(work["optimizer"])]
    if work["model"].startswith("resnet"):
        words += ["--model", work["model"], "--image-size", work["size"], "--bn-group", bn_group or work["batch"]]
        words += ["--classes", work["classes"]]
    return words


def time_ours(context, what, ranks, *more, **changes):
    log, _ = context.train(WORKS[what]["recipe"], *words_of(context, what, ranks, **changes), *more, ranks=ranks)
    return log["steady"]["step_ms_p50"] / 1e3


def find_best(context, what, ranks, configs):
    """Every one of PyTorch's configurations once; the fastest one's name."""
    found = {}
    for name, config in configs.items():
        try:
            found[name] = time_peer(context, what, config, ranks)["step_s"]
        except Unavailable as reason:
            context.notes.append(f"{what}, {ranks} ranks, {name}: {reason}")
            continue
        rate = samples_per_s(WORKS[what], ranks, found[name])
        context.row("configurations of PyTorch", what=what, ranks=ranks, configuration=name, samples_per_s=rate)
    if not found:
        raise Unavailable("no configuration of PyTorch works")
    return min(found, key=found.get)


def compare(context, what, ranks, rates):
    """Ours and PyTorch's best in turn, so that both see the same machine. Medians; the ratio is that of the medians."""
    work = WORKS[what]
    wanted = goal_of(context, what, ranks)
    text = f"{what}, {ranks} rank{'s' if ranks > 1 else ''} of {work['batch']}: >= {wanted} times PyTorch's best"
    try:
        time_ours(context, what, ranks)  # before the peer's long search: does the program have this?
    except Unavailable as reason:
        if wanted:
            context.unavailable(text, reason)
        return
    configs = configurations(context, what)
    best = find_best(context, what, ranks, configs)
    config = configs[best]
    ours, theirs = [], []
    for _ in range(context.repeats):
        ours.append(time_ours(context, what, ranks))
        theirs.append(time_peer(context, what, config, ranks)["step_s"])
    mine, peer = (samples_per_s(work, ranks, statistics.median(times)) for times in (ours, theirs))
    rates[what, ranks] = mine
    ratios = [their_s / our_s for our_s, their_s in zip(ours, theirs)]
    figures = {"ours_samples_per_s": mine, "peer_samples_per_s": peer, "ratio": mine / peer, "wanted": wanted or "-"}
    context.row("speed", what=what, ranks=ranks, **figures, configuration=best)
    if wanted:
        measured = f"{mine / peer:.2f} ({min(ratios):.2f} to {max(ratios):.2f}); "
        measured += f"{figure(mine)} against {figure(peer)} samples/s, {best}"
        context.goal(text, measured, mine / peer >= wanted)


def compare_ranks(context, rates):
    what = "ResNet-18@64, f32"
    if (what, 1) in rates and (what, 2) in rates:
        percent = 50 * rates[what, 2] / rates[what, 1]
        context.goal(f"{what}: 2 ranks against 1, >= 95 % efficiency", f"{percent:.1f} %", percent >= 95)


def compare_bf16(context, what, ranks):
    """What is kept in bf16 on a processor without instructions for it, beside the same in f32, in turn."""
    times = {"bf16": [], "f32": []}
    for _, precision in itertools.product(range(context.repeats), times):
        times[precision].append(time_ours(context, f"{what}, {precision}", ranks))
    bf16, f32 = (samples_per_s(WORKS[f"{what}, f32"], ranks, statistics.median(of)) for of in times.values())
    text = f"{what}, {ranks} rank{'s' if ranks > 1 else ''}: bf16 at >= 0.8 of f32's speed"
    context.goal(text, f"{bf16 / f32:.2f}; {figure(bf16)} against {figure(f32)} samples/s", bf16 / f32 >= 0.8)


def compare_shards(context, what, ranks):
    """From shards in memory, augmented, against batches that are there already, in turn, on the same cores."""
    work = WORKS[what]
    size = work["size"]
    stored = size if size <= 64 else size + 32
    n = max(work["batch"] * ranks * (n_steps(context, what) + 5), 256)
    kind = ["images", "--samples", n, "--height", stored, "--width", stored, "--classes", work["classes"]]
    folder = context.make_set(f"images-{stored}-{n}-{work['classes']}", "synth", *kind)
    first = f"crop:{size}:4" if size <= 64 else f"rrcrop:{size}"
    augment = ["--augment", f"{first},flip,normalize:0.485/0.456/0.406:0.229/0.224/0.225"]
    from_shards = ["--no-synthetic", "--data", folder, "--drop-last", *augment]
    times = {True: [], False: []}
    for _, is_read in itertools.product(range(context.repeats), (True, False)):
        times[is_read].append(time_ours(context, what, ranks, data=from_shards if is_read else ()))
    percent = 100 * statistics.median(times[False]) / statistics.median(times[True])
    text = f"{what}, {ranks} rank{'s' if ranks > 1 else ''}: from shards with augmentation >= 97 % of synthetic"
    context.goal(text, f"{percent:.1f} %", percent >= 97)


def compare_deterministic(context, what, ranks):
    times = {"": [], "--deterministic": []}
    for _, flag in itertools.product(range(context.repeats), times):
        times[flag].append(time_ours(context, what, ranks, *filter(None, [flag]), bn_group=16))
    cost = 100 * (statistics.median(times["--deterministic"]) / statistics.median(times[""]) - 1)
    context.row("cost of --deterministic", what=what, ranks=ranks, step_longer_by_percent=cost)


def compare_start(context, what, ranks):
    """From the command to the end of the first step, less a steady step: what there is to do before training."""
    step_s = time_ours(context, what, ranks)
    starts = []
    for _ in range(context.repeats):
        begin = time.perf_counter()
        log, _ = context.train(WORKS[what]["recipe"], *words_of(context, what, ranks, steps=1), ranks=ranks)
        save_s = next(phase["max_s"] for phase in log["phases"] if phase["phase"] == "save")
        starts.append(time.perf_counter() - begin - save_s - step_s)
    start_s = statistics.median(starts)
    context.row("start", what=what, start_to_first_step_s=start_s, step_s=step_s)
    context.goal(f"{what}: start to first step < 2 s", f"{start_s:.2f} s", start_s < 2)


def run(context):
    rates = {}
    n_ranks = (1, 2) if len(context.cores) > 1 else (1,)

    def attempt(measure, what, ranks, *more):
        if not any(name.startswith(what) for name in context.works):
            return
        try:
            measure(context, what, ranks, *more)
        except Unavailable as reason:
            context.notes.append(f"{what}, {ranks} rank{'s' if ranks > 1 else ''}: {reason}")

    if context.isa != "default":
        for what, ranks in FORCED_GOALS[context.isa]:
            if ranks in n_ranks:
                attempt(compare, what, ranks, rates)
        for what in ("ResNet-18@64", "ResNet-50@224"):
            attempt(compare_bf16, what, n_ranks[-1])
        return
    for what, ranks in itertools.product(WORKS, n_ranks):
        attempt(compare, what, ranks, rates)
    compare_ranks(context, rates)
    for what, ranks in itertools.product(("ResNet-18@64, f32", "ResNet-50@224, f32"), n_ranks):
        attempt(compare_shards, what, ranks)
    for what, ranks in itertools.product(("ResNet-18@64, f32", "MNIST CNN"), n_ranks):
        attempt(compare_deterministic, what, ranks)
    attempt(compare_start, "ResNet-50@224, f32", 1)
