#!/usr/bin/env python3
"""Writes the orders of PyTorch's DistributedSampler that `lockstep --order torch` must reproduce.

usage: make_torch_order.py > tests/unit/data/load/golden/torch_order.txt

Each line: samples, seed, epoch, ranks, rank, number of ids, hash of all ids in their order, first ids, last ids.
"""

import torch
from torch.utils.data.distributed import DistributedSampler

N_SHOWN = 20
CASES = [
    # samples, seeds, epochs, ranks
    (1, [0], [0], [1, 3]),
    (3, [7], [0], [1, 8]),
    (10, [0, 1, 12345, 2**32 + 5], [0, 1], [1, 2, 3, 4]),
    (2048, [0, 42], [0, 3], [1, 2, 3, 7]),
    (60000, [0, 42], [0, 9], [1, 4, 7]),
]


def fold(ids):
    """FNV-1a with a whole id, instead of a byte, at a time."""
    value = 0xCBF29CE484222325
    for i in ids:
        value = ((value ^ i) * 0x100000001B3) % 2**64
    return value


def main():
    print(f"# PyTorch {torch.__version__}, torch.utils.data.DistributedSampler(shuffle=True, drop_last=False)")
    print("# samples seed epoch ranks rank n hash : first : last")
    for n, seeds, epochs, worlds in CASES:
        for seed in seeds:
            for epoch in epochs:
                for n_ranks in worlds:
                    for rank in range(n_ranks):
                        sampler = DistributedSampler(range(n), num_replicas=n_ranks, rank=rank, shuffle=True, seed=seed)
                        sampler.set_epoch(epoch)
                        ids = list(sampler)
                        first, last = (" ".join(map(str, part)) for part in (ids[:N_SHOWN], ids[-N_SHOWN:]))
                        print(n, seed, epoch, n_ranks, rank, len(ids), fold(ids), ":", first, ":", last)


if __name__ == "__main__":
    main()
