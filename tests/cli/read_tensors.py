"""read_tensors.py FILE: name, shape and SHA-256 of the bytes of each tensor of an .npz or .safetensors file, sorted by name.

By the standard library alone; where NumPy and safetensors are there they must see the same."""
import ast
import hashlib
import json
import struct
import sys
import zipfile


def npz(path):
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None, "a check sum is wrong"
        for member in archive.infolist():
            assert member.compress_type == zipfile.ZIP_STORED, "compressed"
            data = archive.read(member)
            assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
            begin = 10 + struct.unpack("<H", data[8:10])[0]
            header = ast.literal_eval(data[10:begin].decode("ascii"))
            assert begin % 64 == 0 and header["descr"] == "<f4" and not header["fortran_order"], header
            yield member.filename.removesuffix(".npy"), header["shape"], data[begin:]


def safetensors(path):
    with open(path, "rb") as file:
        content = file.read()
    begin = 8 + struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:begin])
    assert begin % 8 == 0 and header.pop("__metadata__")["format"] == "pt", header
    for name, tensor in header.items():
        assert tensor["dtype"] == "F32", tensor
        first, end = tensor["data_offsets"]
        yield name, tuple(tensor["shape"]), content[begin + first:begin + end]


def by_its_library(path):
    """As NumPy or safetensors reads it; None where that is missing."""
    try:
        if path.endswith(".npz"):
            import numpy
            arrays = numpy.load(path)
        else:
            from safetensors.numpy import load_file
            arrays = load_file(path)
    except ImportError:
        return None
    return {name: (arrays[name].shape, arrays[name].tobytes()) for name in arrays}


def main(path):
    tensors = {name: (shape, data) for name, shape, data in (npz if path.endswith(".npz") else safetensors)(path)}
    library = by_its_library(path)
    assert library in (None, tensors), "another program reads something else"
    for name, (shape, data) in sorted(tensors.items()):
        print(name, list(shape), hashlib.sha256(data).hexdigest())


if __name__ == "__main__":
    main(*sys.argv[1:])
