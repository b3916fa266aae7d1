"""The peer of `lockstep shard import images`: a pool of Pillow processes that write one HDF5 file.

Also makes the images to import (--make), so that the comparison needs no download. Prints one line of JSON.
"""

import argparse
import json
import time
from multiprocessing import Pool
from pathlib import Path

import h5py
import numpy
from PIL import Image, ImageFilter

CLASSES = 10


def make_one(task):
    path, index, width, height = task
    generator = numpy.random.default_rng(index)
    coarse = generator.integers(0, 256, (height // 16 + 2, width // 16 + 2, 3), dtype=numpy.uint8)
    image = Image.fromarray(coarse).resize((width, height), Image.BICUBIC).filter(ImageFilter.SHARPEN)
    noise = generator.integers(0, 24, (height, width, 3), dtype=numpy.uint8)
    Image.fromarray(numpy.asarray(image) // 2 + 64 + noise).save(path, quality=90)


def make(folder, n_images, width, height, processes):
    tasks = []
    for index in range(n_images):
        path = Path(folder, f"class_{index % CLASSES}", f"{index:06}.jpg")
        path.parent.mkdir(parents=True, exist_ok=True)
        tasks.append((path, index, width, height))
    with Pool(processes) as pool:
        pool.map(make_one, tasks, chunksize=64)


def load(task):
    path, resize, crop = task
    with Image.open(path) as image:
        if resize:
            image.draft("RGB", (resize, resize))  # decode at reduced size where the format can
            scale = resize / min(image.size)
            image = image.resize((round(image.width * scale), round(image.height * scale)), Image.BILINEAR)
        if crop:
            left, top = (image.width - crop) // 2, (image.height - crop) // 2
            image = image.crop((left, top, left + crop, top + crop))
        return numpy.asarray(image.convert("RGB"))


def import_all(folder, out, resize, crop, processes):
    classes = sorted(path.name for path in Path(folder).iterdir())
    paths = [(path, label) for label, name in enumerate(classes) for path in sorted(Path(folder, name).iterdir())]
    first = load((paths[0][0], resize, crop))
    tasks = [(path, resize, crop) for path, _ in paths]
    with h5py.File(out, "w") as file, Pool(processes) as pool:
        x = file.create_dataset("x", (len(paths), *first.shape), "u1", chunks=(min(64, len(paths)), *first.shape))
        file["y"] = numpy.array([label for _, label in paths], dtype="u1")
        block = []
        done = 0
        for image in pool.imap(load, tasks, chunksize=32):
            block.append(image)
            if len(block) == 64 or done + len(block) == len(paths):
                x[done : done + len(block)] = numpy.stack(block)
                done += len(block)
                block = []
    return len(paths)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--make", type=int, metavar="N")
    parser.add_argument("--size", help="WIDTHxHEIGHT of the images to make")
    parser.add_argument("--out")
    parser.add_argument("--resize", type=int, default=0)
    parser.add_argument("--crop", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.make:
        width, height = map(int, arguments.size.split("x"))
        make(arguments.folder, arguments.make, width, height, arguments.processes)
        return
    start = time.perf_counter()
    n_images = import_all(arguments.folder, arguments.out, arguments.resize, arguments.crop, arguments.processes)
    print(json.dumps({"images_per_s": n_images / (time.perf_counter() - start), "images": n_images}))


if __name__ == "__main__":
    main()
