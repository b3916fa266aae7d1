"""Makes the peer's HDF5 file from a shard folder: one file with x and y, read from the shards through h5py.

peer_files.py SHARDS OUT CHUNK_SAMPLES
"""

import json
import sys
from pathlib import Path

import h5py


def main():
    folder, out, chunk = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    splits = json.loads((folder / "manifest.json").read_text())["splits"]
    shards = next(split for split in splits if split["name"] == "train")["shards"]
    n_samples = sum(shard["n_samples"] for shard in shards)
    with h5py.File(out, "w", libver="latest") as target:
        done = 0
        for shard in shards:
            with h5py.File(folder / shard["file"], "r") as source:
                for name in ("x", "y"):
                    if name not in target:
                        tail = source[name].shape[1:]
                        rows = min(chunk, n_samples)
                        target.create_dataset(name, (n_samples, *tail), source[name].dtype, chunks=(rows, *tail))
                    target[name][done : done + shard["n_samples"]] = source[name][...]
            done += shard["n_samples"]


if __name__ == "__main__":
    main()
