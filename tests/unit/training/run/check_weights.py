"""check_weights.py read F.h5: exit 1 if h5py does not find in it what write_example wrote.
check_weights.py write F.h5: the same tensors, as a program of others would write them."""
import sys

import h5py
import numpy


def read(path):
    with h5py.File(path, "r") as file:
        assert sorted(file) == ["a.weight", "b"], sorted(file)
        assert dict(file.attrs) == {
            "lockstep_format": b"weights", "lockstep_version": 1, "model": b"example", "epoch": 2, "samples_seen": 128,
        }, dict(file.attrs)
        for name, shape, first in (("a.weight", (2, 3), 0), ("b", (4,), 10)):
            dataset = file[name]
            assert dataset.shape == shape and dataset.dtype == numpy.dtype("<f4") and dataset.chunks is None, dataset
            expected = numpy.arange(first, first + dataset.size, dtype="f4").reshape(shape)
            assert numpy.array_equal(dataset[...], expected), dataset[...]
            assert dataset.attrs["crc32c"] == crc32c(expected.tobytes()), dataset.attrs["crc32c"]


def crc32c(data):
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def write(path):
    with h5py.File(path, "w") as file:
        file["a.weight"] = numpy.ones((2, 3), dtype="f4")
        file.create_dataset("b", data=numpy.full(4, 0.5, dtype="f4"), chunks=(2,), compression="gzip")
        file["bn.num_batches_tracked"] = numpy.int64(7)


if __name__ == "__main__":
    {"read": read, "write": write}[sys.argv[1]](sys.argv[2])
