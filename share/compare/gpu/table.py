#!/usr/bin/env python3
"""table.py RESULTS: the table of a comparison on a GPU, from results.jsonl: ours, PyTorch's best, the roofline."""

import json
import statistics
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # leave the source folder as it was

from works import WORKS

MIN_WINDOWS = 5


def roofline(work, precision, ceilings):
    """Samples a second that no program exceeds which moves these bytes and does these operations; None if unknown."""
    product = ceilings.get({"bf16": "bfloat16", "f16": "float16", "f32": "float32"}[precision])
    if not work.mb_of_16_bits or not product or not ceilings.get("copy"):
        return None
    mb = work.mb_of_16_bits * (2 if precision == "f32" else 1)
    return 1 / max(mb / 1e3 / ceilings["copy"], work.gflop / 1e3 / product)


def ceilings_of(rows):
    """What `gpu_facts ceilings` has measured: {"copy": GB/s, "bfloat16": TFLOP/s, ...}."""
    ceilings = {}
    for row in rows:
        if row.get("kind") == "copy" and row["what"].startswith("device to device"):
            ceilings["copy"] = row["GBps"]
        if row.get("kind") == "product":
            ceilings[row["type"]] = row["TFLOPs"]
    return ceilings


def median_rate(row, batch):
    return batch / statistics.median(row["window_s"])


def compare(rows):
    """A row for each work and precision that has been measured: figures as numbers, None for what was not."""
    ceilings = ceilings_of(rows)
    measured = [row for row in rows if row.get("kind") == "step" and len(row["window_s"]) >= MIN_WINDOWS]
    table = []
    for name, work in WORKS.items():
        for precision in work.precisions:
            of_this = [row for row in measured if row["work"] == name and row["precision"] == precision]
            ours = [median_rate(row, work.batch) for row in of_this if row["who"] == "lockstep"]
            peers = {row["config"]: median_rate(row, work.batch) for row in of_this if row["who"] == "torch"}
            if not ours and not peers:
                continue
            best = max(peers, key=peers.get, default=None)
            limit = roofline(work, precision, ceilings)
            table.append(
                {
                    "work": name,
                    "precision": precision,
                    "ours": ours[-1] if ours else None,
                    "best": peers.get(best),
                    "best_config": best,
                    "n_configs": len(peers),
                    "ratio": ours[-1] / peers[best] if ours and peers else None,
                    "roofline": limit,
                    "share": ours[-1] / limit if ours and limit else None,
                }
            )
    return table


def markdown(rows):
    def figure(value, form="{:,.0f}"):
        return "–" if value is None else form.format(value)

    lines = [
        "| work | precision | ours, samples/s | PyTorch's best | of configurations | ours / PyTorch | roofline | ours of it |",
        "|---|---|---:|---|---:|---:|---:|---:|",
    ]
    for row in compare(rows):
        best = "–" if row["best"] is None else f"{row['best']:,.0f} ({row['best_config']})"
        words = [row["work"], row["precision"], figure(row["ours"]), best, row["n_configs"]]
        words += [figure(row["ratio"], "{:.2f}"), figure(row["roofline"]), figure(row["share"], "{:.0%}")]
        lines.append("| " + " | ".join(map(str, words)) + " |")
    return "\n".join(lines)


def read_rows(path):
    """Whole lines; of one that was cut off by the end of a call nothing is left."""
    if not path.exists():
        return []
    rows = []
    for line in path.read_text().splitlines():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return rows


def main():
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_file():
        print("usage: table.py RESULTS, a results.jsonl that `run` has written", file=sys.stderr)
        sys.exit(2)
    print(markdown(read_rows(Path(sys.argv[1]))))


if __name__ == "__main__":
    main()
