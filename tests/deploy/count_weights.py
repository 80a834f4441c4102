#!/usr/bin/env python3
"""Prints how often a tensor's bytes are in a file: count_weights.py TENSOR FILE WEIGHTS.safetensors...

Looked for are 64 pieces of 64 bytes each, from all over the tensor, and their finds are added up. If there are several
files of weights, the tensor must be the same in all of them.
"""

import json
import struct
import sys

PIECES = 64
PIECE_BYTES = 64


def read_tensor(path, name):
    with open(path, "rb") as file:
        (header_bytes,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(header_bytes))
        begin, end = header[name]["data_offsets"]
        file.seek(8 + header_bytes + begin)
        return file.read(end - begin)


def main(name, searched, *paths):
    tensor = read_tensor(paths[0], name)
    for path in paths[1:]:
        if read_tensor(path, name) != tensor:
            sys.exit(f"{path}: {name} is not that of {paths[0]}")
    stride = len(tensor) // PIECES
    pieces = [tensor[at : at + PIECE_BYTES] for at in range(0, stride * PIECES, stride)]
    if stride < PIECE_BYTES or len(set(pieces)) != PIECES:
        sys.exit(f"{paths[0]}: {name} is too small, or repeats itself")
    with open(searched, "rb") as file:
        contents = file.read()
    print(sum(contents.count(piece) for piece in pieces))


if __name__ == "__main__":
    main(*sys.argv[1:])
