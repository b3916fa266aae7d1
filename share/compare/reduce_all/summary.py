"""From repeated launches to one figure per series and size, ratios of them, and the goals judged by them."""

import math
import statistics
from dataclasses import dataclass

from contestants import OPEN_MPI_ALGORITHM_IDS, OVERHEAD_SIZES

KIB, MIB = 1 << 10, 1 << 20
MIDDLE = (8 * KIB, 2 * MIB)  # where single-copy system calls and shared-memory copies part
OPEN_MPI_CONFIGURATIONS = ("open_mpi", "open_mpi_no_single_copy", "open_mpi_sm", "open_mpi_han")
GLOO_ALGORITHMS = ("gloo_ring", "gloo_bcube", "gloo_ring_chunked_polling")
OURS = "lockstep shm"
OVERHEAD_SERIES = ("plain_overhead", "lockstep_mpi mpi")


@dataclass
class Figure:
    """One series at one size: medians over the launches of what each launch reported."""

    time_us: float
    time_us_min: float  # of the launches' medians
    time_us_max: float
    interval_percent: float  # width of a launch's own 95 % interval of the median
    launches: int
    limit_percent: float = None


def summarize(rows_of_launches):
    """[row, ...] of one series and size, one per launch."""
    times = [row["time_us_p50"] for row in rows_of_launches]
    widths = [
        100 * (row["time_us_p50_high"] - row["time_us_p50_low"]) / row["time_us_p50"]
        for row in rows_of_launches
        if has_interval(row)
    ]
    limits = [row["limit_percent"] for row in rows_of_launches if row.get("limit_percent") is not None]
    return Figure(
        time_us=statistics.median(times),
        time_us_min=min(times),
        time_us_max=max(times),
        interval_percent=statistics.median(widths) if widths else math.inf,
        launches=len(times),
        limit_percent=statistics.median(limits) if limits else None,
    )


def has_interval(row):
    return None not in (row.get("time_us_p50_low"), row.get("time_us_p50_high"))


def best_of(figures, names):
    """{bytes: time} of the fastest of the named series at each size."""
    return minimum_by_size([times(figures, name) for name in names if name in figures])


def minimum_by_size(series):
    sizes = sorted(set().union(*series)) if series else []
    return {size: min(one[size] for one in series if size in one) for size in sizes}


def times(figures, name):
    return {size: figure.time_us for size, figure in figures.get(name, {}).items()}


def ratios(slower, faster, within=(0, math.inf)):
    """{bytes: slower / faster} at the sizes both have."""
    return {
        size: slower[size] / faster[size]
        for size in sorted(slower)
        if size in faster and within[0] <= size <= within[1]
    }


def geometric_mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def open_mpi_choice(n_ranks, size):
    """What Open MPI 4.1's coll/tuned takes for an all-reduce of `size` bytes; a segmented ring counts as ring.

    Reference: ompi_coll_tuned_allreduce_intra_dec_fixed in coll_tuned_decision_fixed.c, commutative operations.
    """
    if n_ranks < 4:
        limits = {
            8: "ring",
            4 * KIB: "recursive_doubling",
            8 * KIB: "ring",
            16 * KIB: "recursive_doubling",
            256 * KIB: "ring",
        }
    elif n_ranks < 8:
        limits = {16: "ring", 8 * KIB: "recursive_doubling"}
    elif n_ranks < 16:
        limits = {8 * KIB: "recursive_doubling"}
    else:
        return None
    return next((name for limit, name in limits.items() if size < limit), "rabenseifner")


@dataclass
class Goal:
    text: str
    figure: str
    is_met: bool = None  # None: could not be measured

    @property
    def verdict(self):
        return {True: "met", False: "not met", None: "not measured"}[self.is_met]


def judge(figures, n_ranks):
    """Every goal with the figure measured for it."""
    ours = times(figures, OURS)
    default = ratios(times(figures, "open_mpi"), ours)
    best = ratios(best_of(figures, OPEN_MPI_CONFIGURATIONS), ours)
    gloo = ratios(best_of(figures, GLOO_ALGORITHMS), ours)
    goals = [
        mean_goal("shm against Open MPI's default, 8 KiB-2 MiB: geometric mean >= 2", default, 2, MIDDLE),
        worst_goal("shm against Open MPI's default, every size: not slower", default),
        others_goal(figures),
        mean_goal("shm against Open MPI's best configuration, 8 KiB-2 MiB: geometric mean >= 1.2", best, 1.2, MIDDLE),
        mean_goal("shm against Open MPI's best configuration, all sizes: geometric mean >= 1.2", best, 1.2),
        mean_goal("shm against gloo's best, all sizes: geometric mean >= 5", gloo, 5),
        limit_goal(figures),
    ]
    goals.append(agreement_goal(figures))
    goals += [algorithm_goal(figures, name, n_ranks) for name in OPEN_MPI_ALGORITHM_IDS]
    return goals + [overhead_goal(figures, size) for size in OVERHEAD_SIZES]


def mean_goal(text, ratio, wanted, within=(0, math.inf)):
    chosen = [value for size, value in ratio.items() if within[0] <= size <= within[1]]
    if not chosen:
        return Goal(text, "-")
    mean = geometric_mean(chosen)
    return Goal(text, f"{mean:.2f} over {len(chosen)} sizes, worst {min(chosen):.2f}", mean >= wanted)


def worst_goal(text, ratio):
    if not ratio:
        return Goal(text, "-")
    worst = min(ratio, key=ratio.get)
    slower = sum(value < 1 for value in ratio.values())
    return Goal(
        text, f"worst {ratio[worst]:.2f} at {format_bytes(worst)}, {slower} of {len(ratio)} sizes slower", slower == 0
    )


def others_goal(figures):
    text = "shm against the best of all others, ours too, every size: >= 0.95, or the ranges of the launches' medians overlap"
    others = {name: sizes for name, sizes in figures.items() if name != OURS and name not in OVERHEAD_SERIES}
    ratio, slower = {}, []
    for size, ours in figures.get(OURS, {}).items():
        figures_of_others = [sizes[size] for sizes in others.values() if size in sizes]
        if not figures_of_others:
            continue
        best = min(figures_of_others, key=lambda figure: figure.time_us)
        ratio[size] = best.time_us / ours.time_us
        if ratio[size] < 0.95 and ours.time_us_min > best.time_us_max:
            slower.append(format_bytes(size))
    if not ratio:
        return Goal(text, "-")
    worst = min(ratio, key=ratio.get)
    figure = f"lowest {ratio[worst]:.2f} at {format_bytes(worst)}, {len(slower)} of {len(ratio)} sizes slower"
    return Goal(text, figure + (": " + ", ".join(slower) if slower else ""), not slower)


def limit_goal(figures):
    text = "shm from 16 MiB on: >= 50 % of the measured memory limit"
    limits = {
        size: figure.limit_percent
        for size, figure in figures.get(OURS, {}).items()
        if size >= 16 * MIB and figure.limit_percent is not None
    }
    if not limits:
        return Goal(text, "-")
    worst = min(limits, key=limits.get)
    return Goal(text, f"lowest {limits[worst]:.0f} % at {format_bytes(worst)}", limits[worst] >= 50)


def algorithm_goal(figures, name, n_ranks):
    """Judged against the default where the default is this algorithm; against the forced algorithm for information."""
    text = f"{name} within 10 % of Open MPI where Open MPI's own choice is {name}"
    own = times(figures, f"lockstep {name}")
    same = {
        size: value
        for size, value in ratios(own, times(figures, "open_mpi")).items()
        if open_mpi_choice(n_ranks, size) == name
    }
    forced = ratios(own, times(figures, f"open_mpi_{name}"))
    if not same:
        return Goal(text, "-")
    worst = max(same, key=same.get)
    figure = (
        f"time {geometric_mean(same.values()):.2f} of Open MPI's over {len(same)} sizes, "
        f"worst {same[worst]:.2f} at {format_bytes(worst)}"
    )
    if forced:
        figure += f"; {geometric_mean(forced.values()):.2f} of it forced, all sizes"
    return Goal(text, figure, same[worst] <= 1.10)


def overhead_goal(figures, size):
    text = f"benchmark's own overhead at {format_bytes(size)}: medians within 5 %, both intervals under 10 %"
    own = figures.get("lockstep_mpi mpi", {}).get(size)
    plain = figures.get("plain_overhead", {}).get(size)
    if not own or not plain:
        return Goal(text, "-")
    difference = 100 * (own.time_us / plain.time_us - 1)
    figure = (
        f"{own.time_us:.3g} against {plain.time_us:.3g} us ({difference:+.1f} %), intervals "
        f"{own.interval_percent:.1f} % and {plain.interval_percent:.1f} % wide"
    )
    return Goal(text, figure, abs(difference) <= 5 and max(own.interval_percent, plain.interval_percent) < 10)


def agreement_goal(figures):
    """They make the same calls of the same library: where they differ, something but the library was measured."""
    text = "Open MPI alone and as Lockstep's row mpi, every size: within a factor of 1.5"
    ratio = ratios(times(figures, "open_mpi"), times(figures, "lockstep mpi"))
    if not ratio:
        return Goal(text, "-")
    most = max(ratio, key=lambda size: abs(math.log(ratio[size])))
    return Goal(text, f"most {ratio[most]:.2f} at {format_bytes(most)}", 1 / 1.5 < ratio[most] < 1.5)


def format_bytes(size):
    for unit, name in ((1 << 30, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"
