"""Writes ratings of lectures as CSV files, from Debian's package r-cran-lme4, without R.

    ratings.py PACKAGE DIRECTORY

PACKAGE is the package, unpacked. Its data set InstEval has 73,421 ratings, 1 to 5, of 1,128 lecturers by 2,972
students of ETH Zurich. About every tenth rating, chosen by a hash of its line, is in test.csv, and the others are in
train.csv.
"""

from __future__ import annotations

import gzip
import pathlib
import struct
import sys
import zlib
from typing import Any

RATINGS = 73421
HELD_OUT = 10
# The data set's names, and those that the files have.
COLUMNS = {
    "y": "rating",
    "s": "student",
    "d": "lecturer",
    "studage": "semesters",
    "lectage": "semesters_ago",
    "service": "service",
    "dept": "department",
}

# Types of R's serialisation (R Internals, section 1.8); its flags above.
SYMBOL, PAIRS, CHARACTERS, LOGICALS, INTEGERS, NUMBERS, STRINGS, LIST = 1, 2, 9, 10, 13, 14, 16, 19
ALTERNATIVE, REFERENCE, NULL = 238, 255, 254
HAS_ATTRIBUTES, HAS_TAG = 0x200, 0x400


class Unserializer:
    """Reads the objects of R's binary serialisation, as far as tables of numbers and factors have them: a vector
    becomes a list, and an object with attributes a pair of that and a dictionary."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.symbols: list[str] = []
        if self.take(2) != b"X\n":
            raise ValueError("not R's binary serialisation")
        version, _, _ = self.integers(3)
        if version == 3:
            self.take(self.integers(1)[0])  # The native encoding's name.

    def take(self, count: int) -> bytes:
        """The next bytes."""
        if count < 0 or self.at + count > len(self.data):
            raise ValueError(f"{count} bytes at {self.at} of {len(self.data)}")
        self.at += count
        return self.data[self.at - count : self.at]

    def integers(self, count: int) -> tuple[int, ...]:
        """32-bit integers."""
        return struct.unpack(f">{count}i", self.take(4 * count))

    def pairs(self, flags: int) -> dict[str, Any]:
        """A list of tagged values, whose first flags are given."""
        result = {}
        while flags & 0xFF == PAIRS:
            if flags & HAS_ATTRIBUTES:
                self.item()
            tag = self.item() if flags & HAS_TAG else ""
            result[tag] = self.item()
            (flags,) = self.integers(1)
        if flags & 0xFF != NULL:
            raise ValueError(f"a list that ends with type {flags & 0xFF}")
        return result

    def item(self) -> Any:
        """The next object."""
        (flags,) = self.integers(1)
        kind = flags & 0xFF
        if kind == NULL:
            return None
        if kind == REFERENCE:
            return self.symbols[(flags >> 8) - 1]
        if kind == SYMBOL:
            self.symbols.append(self.item())
            return self.symbols[-1]
        if kind == PAIRS:
            return self.pairs(flags)
        if kind == ALTERNATIVE:
            _, state, _ = self.item(), self.item(), self.item()
            return state
        (length,) = self.integers(1)
        if kind == CHARACTERS:
            return "" if length == -1 else self.take(length).decode()
        value: Any
        if kind in (LOGICALS, INTEGERS):
            value = list(self.integers(length))
        elif kind == NUMBERS:
            value = list(struct.unpack(f">{length}d", self.take(8 * length)))
        elif kind in (STRINGS, LIST):
            value = [self.item() for _ in range(length)]
        else:
            raise ValueError(f"an object of type {kind}")
        return (value, self.item()) if flags & HAS_ATTRIBUTES else value


def read_variable(folder: pathlib.Path, name: str) -> Any:
    """A variable of a package's data: the index says where in the other file it is, and both are compressed."""
    index, _ = Unserializer(gzip.decompress((folder / "Rdata.rdx").read_bytes())).item()
    variables, attributes = index[0]
    begin, length = variables[attributes["names"].index(name)]
    part = (folder / "Rdata.rdb").read_bytes()[begin : begin + length]
    # The length without compression stands before it.
    return Unserializer(zlib.decompress(part[4:])).item()


def read_table(folder: pathlib.Path, name: str) -> dict[str, list[str]]:
    """Columns of text, a factor's as the names of its levels."""
    values, attributes = read_variable(folder, name)
    table = {}
    for column, value in zip(attributes["names"], values):
        if isinstance(value, tuple):
            codes, factor = value
            table[column] = [factor["levels"][code - 1] for code in codes]
        else:
            table[column] = [f"{number:g}" for number in value]
    return table


def main() -> None:
    """See above."""
    if len(sys.argv) != 3:
        sys.exit("usage: ratings.py PACKAGE DIRECTORY")
    package, directory = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    table = read_table(package / "usr/lib/R/site-library/lme4/data", "InstEval")
    lines = [",".join(row) for row in zip(*(table[column] for column in COLUMNS))]
    if len(lines) != RATINGS:
        raise ValueError(f"InstEval has {len(lines)} ratings; expected: {RATINGS}")
    directory.mkdir(parents=True, exist_ok=True)
    for name, held_out in (("train.csv", False), ("test.csv", True)):
        part = [line for line in lines if (zlib.crc32(line.encode()) % HELD_OUT == 0) == held_out]
        text = "\n".join([",".join(COLUMNS.values()), *part])
        (directory / name).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
