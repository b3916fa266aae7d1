"""The peer: PyTorch's DataLoader over an HDF5 file, in one configuration. Prints one line of JSON.

Every sample is read through h5py, turned to float32 in [0, 1], normalised, and put channels first, as the training
tutorials do; samples come in random order, batches of 64 are collated by the DataLoader.
"""

import argparse
import json
import time

import h5py
import numpy
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, SequentialSampler


class OneByOne(Dataset):
    """One sample per index: how DataLoader's documentation and most projects do it."""

    def __init__(self, arguments):
        self.arguments = arguments
        with h5py.File(arguments.file, "r") as file:
            self.n_samples = len(file["x"])
        self.x = self.y = None  # opened by each worker for itself, as a file of the parent must not be used in a child
        self.mean, self.std = arguments.mean, arguments.std

    def open(self):
        if self.x is None:
            file = h5py.File(self.arguments.file, "r", rdcc_nbytes=self.arguments.chunk_cache, rdcc_nslots=100003)
            self.x, self.y = file["x"], file["y"]

    def __len__(self):
        return self.n_samples

    def __getitem__(self, index):
        self.open()
        x = torch.from_numpy(self.x[index])
        x = x.unsqueeze(0) if x.ndim == 2 else x.permute(2, 0, 1)
        return x.float().div_(255).sub_(self.mean).div_(self.std), int(self.y[index])


class ByBatch(OneByOne):
    """A whole batch per index: h5py reads the sorted indices in one call, PyTorch converts the batch at once."""

    def __getitem__(self, indices):
        self.open()
        order = numpy.argsort(indices)
        wanted = numpy.asarray(indices)[order]
        x = torch.from_numpy(self.x[wanted])[torch.from_numpy(numpy.argsort(order))]
        y = torch.from_numpy(self.y[wanted].astype(numpy.int64))[torch.from_numpy(numpy.argsort(order))]
        x = x.unsqueeze(1) if x.ndim == 3 else x.permute(0, 3, 1, 2)
        return x.float().div_(255).sub_(self.mean).div_(self.std), y


def make_loader(arguments):
    if arguments.read == "one":
        dataset = OneByOne(arguments)
        shuffle = arguments.order == "random"
        return DataLoader(dataset, batch_size=arguments.batch, shuffle=shuffle, num_workers=arguments.workers)
    dataset = ByBatch(arguments)
    sampler = RandomSampler(dataset) if arguments.order == "random" else SequentialSampler(dataset)
    batches = BatchSampler(sampler, arguments.batch, drop_last=False)
    return DataLoader(dataset, sampler=batches, batch_size=None, num_workers=arguments.workers)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", required=True)
    parser.add_argument("--read", choices=("one", "batch"), required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--order", choices=("random", "sequential"), default="random")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--chunk-cache", type=int, default=256 << 20)
    parser.add_argument("--mean", type=float, default=0.5)
    parser.add_argument("--std", type=float, default=0.25)
    parser.add_argument("--seconds", type=float, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    loader = make_loader(arguments)
    rates, checksum = [], 0.0
    deadline = None
    while deadline is None or time.perf_counter() < deadline:
        n_samples, start = 0, time.perf_counter()
        for x, _ in loader:
            checksum += float(x[0, 0, 0, 0])  # the batch is there
            n_samples += len(x)
            if deadline and time.perf_counter() > deadline:
                break
        if deadline:  # the first epoch fills the caches
            rates.append(n_samples / (time.perf_counter() - start))
        else:
            deadline = time.perf_counter() + arguments.seconds
    print(json.dumps({"samples_per_s": sorted(rates)[len(rates) // 2], "epochs": len(rates), "checksum": checksum}))


if __name__ == "__main__":
    main()
