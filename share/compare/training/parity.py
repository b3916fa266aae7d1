"""Same weights, order and batches, no dropout: gradients of step 1 and loss of each step, ours and PyTorch's."""

import math
import statistics

from context import flags_of

SEEDS = (3, 4, 5, 6, 7)  # of weights and order
RESOLUTION = 2.0**-23  # of float32
# w - LR * g is -LR * g to the last bit, for all but vanishing g: the weights after one step hold the gradient.
LR = 2.0**96
WORKS = {
    # recipe, set, batch per rank, mean and deviation of pixels, optimizer
    "toy": ("toy", ("toy", "--samples", 6400), 32, 0, 1, {"optimizer": "sgd", "lr": 1e-3}),
    "mnist_cnn": ("mnist_cnn", ("digits", "--samples", 8000), 64, 0.1307, 0.3081, {"optimizer": "adadelta", "lr": 1.0}),
    "resnet18": (
        "resnet50_synthetic",
        ("images", "--samples", 3200, "--height", 64, "--width", 64),
        32,
        0.5,
        0.25,
        {"optimizer": "sgd", "lr": 0.01, "momentum": 0.9, "weight_decay": 5e-4},
    ),
    "movielens": (
        "movielens",
        ("ratings", "--samples", 60000),
        256,
        0,
        1,
        {"optimizer": "adamw", "lr": 1e-3, "weight_decay": 0.01},
    ),
}


def compare(context, name, ranks):
    recipe, kind, batch, mean, std, optimizer = WORKS[name]
    folder = context.make_set(f"parity-{name}-{kind[2]}", "synth", *kind)
    case = {"model": name, "data": folder, "ranks": ranks, "batch": batch, "mean": mean, "std": std, "lr": LR}
    case |= {"optimizer": optimizer, "steps": 10 if context.quick else 50}
    case |= {"seeds": SEEDS[:2] if context.quick else SEEDS}
    case |= {"init": f"{context.work}/init-{name}-{{seed}}.h5", "stepped": f"{context.work}/stepped-{{seed}}.h5"}
    context.peer_case("torch_parity.py", "weights", case)
    words = ["--model", name, "--data", folder, "--no-synthetic", "--val-split", "", "--order", "torch"]
    words += ["--batch", batch * ranks]
    words += ["--no-dropout"] if name == "mnist_cnn" else []
    words += ["--augment", f"normalize:{mean}:{std}"] if std != 1 else []
    words += ["--bn-group", batch, "--classes", 10] if name == "resnet18" else []
    compare_gradients(context, recipe, ranks, words, case)
    compare_losses(context, recipe, ranks, words + flags_of(optimizer), case)


def start_of(case, seed):
    return ["--seed", seed, "--init-from", case["init"].format(seed=seed)]


def geometric_mean(values):
    """Of positive values; 0 if one of them is."""
    return math.exp(statistics.mean(map(math.log, values))) if min(values) > 0 else 0.0


def is_further(ours, peers):
    """Whether our distances, one per seed, are beyond the peer's by more than chance and float32 can explain."""
    if geometric_mean(ours) <= RESOLUTION:
        return False
    ratios = [math.log(mine / theirs) if min(mine, theirs) > 0 else 0.0 for mine, theirs in zip(ours, peers)]
    error = statistics.stdev(ratios) / len(ratios) ** 0.5
    return statistics.mean(ratios) > 2 * error


def compare_gradients(context, recipe, ranks, words, case):
    plain = {"optimizer": "sgd", "lr": LR, "momentum": 0, "weight_decay": 0}
    words = [*words, *flags_of(plain), "--max-steps", 1]
    case["losses"] = {}
    for seed in case["seeds"]:
        stepped = case["stepped"].format(seed=seed)
        log, _ = context.train(recipe, *words, *start_of(case, seed), "--save-weights", stepped, ranks=ranks)
        case["losses"][seed] = log["loss"]
    found = context.peer_case("torch_parity.py", "gradients", case)
    distances = {who: {what: [draw[who][what] for draw in found] for what in found[0][who]} for who in found[0]}
    what = f"{case['model']}, {ranks} rank{'s' if ranks > 1 else ''}"
    means = {who: {what: geometric_mean(values) for what, values in of.items()} for who, of in distances.items()}
    tensors = [name for name in means["Lockstep"] if name not in ("all", "loss")]
    for who, mean in means.items():
        name = who if who == "Lockstep" else f"PyTorch, {who}"
        worst = max(mean[tensor] for tensor in tensors)
        context.row("gradients", what=what, who=name, all=mean["all"], worst_tensor=worst, loss=mean["loss"])
    ours = distances.pop("Lockstep")
    worst_layout = {name: max(distances, key=lambda layout: means[layout][name]) for name in ours}
    further = {
        name: means["Lockstep"][name] / means[worst_layout[name]][name]
        for name in (*tensors, "all")
        if is_further(ours[name], distances[worst_layout[name]][name])
    }
    peers = sorted(means[layout]["all"] for layout in distances)
    measured = f"{means['Lockstep']['all']:.1e}, PyTorch {peers[0]:.1e} to {peers[-1]:.1e}"
    measured += f"; no further off in {len(tensors) - len(further.keys() & set(tensors))} of {len(tensors)} tensors"
    if further:
        tensor = max(further, key=further.get)
        measured += f"; {tensor}: {means['Lockstep'][tensor]:.1e}, {further[tensor]:.1f} times PyTorch's"
    context.goal(f"{what}: gradients no further off float64 than PyTorch's", measured, not further)


def loss_of_steps(context, recipe, words, steps, ranks):
    """The log has the mean over all steps of a run: two runs that differ by one step tell its loss."""
    sums = {0: 0.0}
    for step in sorted({last for step in steps for last in (step - 1, step)} - {0}):
        log, _ = context.train(recipe, *words, "--max-steps", step, ranks=ranks)
        sums[step] = log["loss"] * step
    return {step: sums[step] - sums[step - 1] for step in steps}


def compare_losses(context, recipe, ranks, words, case):
    n = case["steps"]
    steps = [*range(1, min(5, n) + 1), *range(10, n + 1, 10)]
    ours = loss_of_steps(context, recipe, words + start_of(case, case["seeds"][0]), steps, ranks)
    peers = context.peer_case("torch_parity.py", "losses", case)
    what = f"{case['model']}, {ranks} rank{'s' if ranks > 1 else ''}"
    spreads = [max(values) - min(values) for values in zip(*peers.values())]
    beyond = []
    for step in steps:
        values = [losses[step - 1] for losses in peers.values()]
        spread = max(spreads[:step])  # what has come apart does not come together again but by chance
        allowed = 2 * max(spread, RESOLUTION * max(values))  # PyTorch's layouts may agree to the last bit
        distance = min(abs(ours[step] - value) for value in values)
        if distance > allowed:
            beyond.append((step, distance, allowed))
        figures = {"ours": ours[step], "peer": values[0], "spread": spread, "distance": distance}
        context.row("loss per step", what=what, step=step, **figures)
    measured = f"{len(steps) - len(beyond)} of {len(steps)} steps, up to step {n}"
    if beyond:
        step, distance, allowed = max(beyond, key=lambda each: each[1] / each[2])
        measured += f"; step {step}: {distance:.1e} where {allowed:.1e} is allowed"
    context.goal(f"{what}: loss per step within twice PyTorch's own spread", measured, not beyond)


def run(context):
    for name in WORKS:
        for ranks in (1, 2):
            compare(context, name, ranks)
