"""The result of a comparison as a Markdown page and as JSON."""

import math
from dataclasses import asdict

from contestants import OPEN_MPI_ALGORITHM_IDS
from summary import (
    GLOO_ALGORITHMS,
    MIDDLE,
    OPEN_MPI_CONFIGURATIONS,
    OURS,
    best_of,
    format_bytes,
    geometric_mean,
    judge,
    ratios,
    times,
)

OTHER_LIBRARIES = ("mpich_4", "open_mpi_5", "mpich_5")


def as_json(run, figures):
    return {
        "schema": "lockstep.compare.reduce_all",
        "schema_version": 1,
        "meta": {
            "date": run.date,
            "cpu": run.machine.cpu,
            "cores": len(run.machine.cores),
            "kernel": run.machine.kernel,
            "load_before": run.machine.load,
            "core_distance": run.distance.word,
            "core_distance_ns": run.distance.usual_ns,
            "sizes_left_out": run.distance.n_moved,
            "ranks": run.setting.n_ranks,
            "repeats": run.repeats,
            "quick": run.quick,
            "collective": "all_reduce",
            "dtype": "float32",
            "op": "sum",
            "versions": run.versions,
        },
        "contestants": [
            {
                "name": one.name,
                "title": one.title,
                "library": one.library,
                "command": one.command_line,
                "not_measured_because": one.why_not or None,
            }
            for one in run.contestants
        ],
        "results": [
            {"series": name, "bytes": size, **asdict(figure)}
            for name, sizes in figures.items()
            for size, figure in sorted(sizes.items())
        ],
        "goals": [
            {"goal": goal.text, "figure": goal.figure, "verdict": goal.verdict}
            for goal in judge(figures, run.setting.n_ranks)
        ],
    }


def as_markdown(run, figures):
    sections = [
        header(run),
        "## Goals\n\n" + goals_table(figures, run.setting.n_ranks),
        "## Times, us\n\n" + times_table(run, figures),
        "## How many times faster `shm` is\n\n" + ratios_table(run, figures),
        "## The same algorithm, ours and Open MPI's\n\n" + algorithms_table(figures),
        "## Contestants\n\n" + contestants_list(run),
    ]
    return "\n\n".join(sections) + "\n"


def header(run):
    machine, setting = run.machine, run.setting
    lines = [
        f"# All-reduce of {setting.n_ranks} ranks on {run.distance.word} cores: Lockstep and its peers, {run.date[:10]}",
        "",
        f"{machine.cpu}, {len(machine.cores)} cores, Linux {machine.kernel}. float32 sum, out of place, buffers hot, "
        f"each rank bound to a core of its own. Medians over {run.repeats} launches, in random order, of each launch's "
        "median over samples; a sample is the maximum over the ranks.",
        "",
        f"Round trip of a cache line between the ranks' cores: {run.distance.usual_ns:.0f} ns ({run.distance.word}), "
        "within a factor of 1.5 the same before and after every size of every launch that counts (of gloo: of every "
        f"launch). Sizes that did not count because the cores had moved: {run.distance.n_moved}.",
        "",
        *(f"- {name}: {version}" for name, version in run.versions.items()),
    ]
    if run.quick:
        lines += ["", "**Quick run**: few sizes, repeats and samples; a check of function, not a result."]
    if run.load_warning:
        lines += ["", f"**{run.load_warning}**"]
    return "\n".join(lines)


def markdown_table(columns, rows):
    lines = ["| " + " | ".join(columns) + " |", "|---" + "|---:" * (len(columns) - 1) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def cell(value, digits=3):
    """Significant digits without an exponent; a dash for what was not measured."""
    if value is None:
        return "-"
    decimals = max(0, digits - 1 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:.{decimals}f}"


def by_size(sizes, series):
    return [[format_bytes(size)] + [cell(one.get(size)) for one in series] for size in sizes]


def goals_table(figures, n_ranks):
    return markdown_table(
        ["goal", "measured", "verdict"], [[goal.text, goal.figure, goal.verdict] for goal in judge(figures, n_ranks)]
    )


def times_table(run, figures):
    peers = {
        one.name: one.title
        for one in run.contestants
        if one.name in figures and one.name not in ("plain_overhead", *forced_names())
    }
    own = [name for name in figures if name.startswith("lockstep ")]
    return markdown_table(
        ["size", *own, *peers.values()], by_size(run.setting.sizes, [times(figures, name) for name in (*own, *peers)])
    )


def ratios_table(run, figures):
    ours = times(figures, OURS)
    opponents = {"Open MPI": times(figures, "open_mpi"), "Open MPI, best": best_of(figures, OPEN_MPI_CONFIGURATIONS)}
    titles = {one.name: one.title for one in run.contestants}
    opponents |= {titles[name]: times(figures, name) for name in OTHER_LIBRARIES}
    opponents["gloo, best"] = best_of(figures, GLOO_ALGORITHMS)
    ratio = [ratios(slower, ours) for slower in opponents.values()]
    rows = by_size(run.setting.sizes, ratio)
    rows.append(["**mean, 8 KiB-2 MiB**", *(mean_cell(one, MIDDLE) for one in ratio)])
    rows.append(["**mean, all sizes**", *(mean_cell(one, (0, math.inf)) for one in ratio)])
    return (
        markdown_table(["size", *opponents], rows)
        + "\n\nMeans are geometric. Best: the fastest configuration at each size."
    )


def mean_cell(ratio, within):
    chosen = [value for size, value in ratio.items() if within[0] <= size <= within[1]]
    return f"**{cell(geometric_mean(chosen))}**" if chosen else "-"


def forced_names():
    return [f"open_mpi_{name}" for name in OPEN_MPI_ALGORITHM_IDS]


def algorithms_table(figures):
    columns, series = ["size"], []
    for name in OPEN_MPI_ALGORITHM_IDS:
        own, forced = times(figures, f"lockstep {name}"), times(figures, f"open_mpi_{name}")
        columns += [f"{name}, us", "Open MPI's, us", "ours / theirs"]
        series += [own, forced, ratios(own, forced)]
    return markdown_table(columns, by_size(sorted(set().union(*series)), series))


def contestants_list(run):
    sizes = ",".join(map(str, run.setting.sizes))
    lines = []
    for one in run.contestants:
        if one.why_not:
            lines.append(f"- {one.title}: **not measured**. {one.why_not}")
        else:
            library = f" ({one.library})" if one.library else ""
            lines.append(f"- {one.title}{library}: `{one.command_line.replace(sizes, 'SIZES')}`")
    return "\n".join([*lines, "", f"SIZES: {sizes}"])
