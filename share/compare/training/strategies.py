"""Our strategies beside ddp, and beside PyTorch's FSDP2 and DistributedDataParallel: two ranks of one thread each."""

import functools
import itertools
import statistics

import speed
from machine import Unavailable

WHAT = "ResNet-50@224, f32"
RANKS = 2
OURS = ("ddp", "zero1", "zero2", "fsdp")
FSDP2, DDP = "PyTorch FSDP2", "PyTorch DDP"
# What is measured, beside what, how many times its speed is wanted.
GOALS = (("zero1", "ddp", 0.95), ("zero2", "ddp", 0.95), ("fsdp", "ddp", 0.95), ("fsdp", FSDP2, 2.0))


def sharded_configurations(context):
    """FSDP2's, by name. Mixed precision is off. It takes no weights with channels last, and no fused SGD."""
    foreach = {"options": {"foreach": True}, "channels_last": False, "compile": False}
    kinds = {"foreach": foreach, "foreach, images channels last": foreach | {"channels_last": True}}
    kinds |= {"foreach, compile": foreach | {"compile": True}, "plain optimizer": foreach | {"options": {}}}
    configs = {}
    for (kind, keys), reshard in itertools.product(kinds.items(), (True, False)):
        name = f"reshard_after_forward={reshard}, {kind}" + (", tcmalloc" if context.tcmalloc else "")
        configs[name] = keys | {"reshard_after_forward": reshard, "tcmalloc": bool(context.tcmalloc)}
    return dict(list(configs.items())[:2]) if context.quick else configs


def our_contenders(context):
    """Those that the program has, by name: a function that returns the seconds of a step, and how it is configured."""
    found = {}
    for name in OURS:
        measure = functools.partial(speed.time_ours, context, WHAT, RANKS, "--strategy", name)
        try:
            measure()  # before the peer's long search
            found[name] = (measure, "-")
        except Unavailable as reason:
            context.notes.append(f"{name}: {reason}")
    return found


def peers(context):
    """PyTorch's, each in its fastest configuration."""
    found = {}
    for name, configs in ((FSDP2, sharded_configurations(context)), (DDP, speed.configurations(context, WHAT))):
        try:
            best = speed.find_best(context, WHAT, RANKS, configs)
        except Unavailable as reason:
            context.notes.append(f"{name}: {reason}")
            continue

        def measure(config=configs[best]):
            return speed.time_peer(context, WHAT, config, RANKS)["step_s"]

        found[name] = (measure, best)
    return found


def judge(context, times, name, other, wanted):
    """The ratio is that of the medians; in parentheses its range over the turns."""
    text = f"{WHAT}, {RANKS} ranks: {name} >= {wanted} times {other}"
    for each in (name, other):
        if each not in times:
            context.unavailable(text, f"{each} was not measured")
            return
    ratio = statistics.median(times[other]) / statistics.median(times[name])
    ratios = [other_s / our_s for our_s, other_s in zip(times[name], times[other])]
    context.goal(text, f"{ratio:.2f} ({min(ratios):.2f} to {max(ratios):.2f})", ratio >= wanted)


def run(context):
    if len(context.cores) < RANKS:
        raise Unavailable(f"{RANKS} cores are needed")
    contenders = our_contenders(context)
    if "ddp" not in contenders:
        raise Unavailable("ddp cannot be measured")
    contenders |= peers(context) if context.python else {}
    times = {name: [] for name in contenders}
    for _, name in itertools.product(range(context.repeats), contenders):  # in turn: all see the same machine
        times[name].append(contenders[name][0]())
    ddp_s = statistics.median(times["ddp"])
    for name, (_, configuration) in contenders.items():
        step_s = statistics.median(times[name])
        rate = speed.samples_per_s(speed.WORKS[WHAT], RANKS, step_s)
        figures = {"samples_per_s": rate, "of_our_ddp": ddp_s / step_s, "configuration": configuration}
        context.row("strategies", what=WHAT, ranks=RANKS, who=name, **figures)
    for goal in GOALS:
        judge(context, times, *goal)
