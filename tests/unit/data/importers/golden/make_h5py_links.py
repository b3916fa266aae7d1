"""Makes h5py_links.h5, where x is a soft link and y an external one, and h5py_flags.h5, where that leads: to bool."""
import pathlib

import h5py
import numpy

folder = pathlib.Path(__file__).parent
with h5py.File(folder / "h5py_flags.h5", "w") as file:
    file["deep/flags"] = numpy.array([True, False, True])
with h5py.File(folder / "h5py_links.h5", "w") as file:
    file["deep/numbers"] = numpy.arange(6, dtype=numpy.float32).reshape(3, 2)
    file["x"] = h5py.SoftLink("/deep/numbers")
    file["y"] = h5py.ExternalLink("h5py_flags.h5", "/deep/flags")
    file["nowhere"] = h5py.SoftLink("/nothing")
