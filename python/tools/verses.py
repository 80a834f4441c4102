"""Writes the verses of the King James Bible as CSV files, from the text that Debian's `bible` prints.

    verses.py TEXT DIRECTORY

A line has the number of its book, 0 to 65, the book's short name, how many words the verse has, and its text. About
every tenth verse, chosen by a hash of its line, is in test.csv, and the others are in train.csv.
"""

from __future__ import annotations

import csv
import pathlib
import re
import sys
import zlib

BOOKS = 66
HELD_OUT = 10


def read_verses(path: pathlib.Path) -> list[tuple[int, str, int, str]]:
    """Lines as above."""
    books: dict[str, int] = {}
    verses = []
    for line in path.read_text(encoding="utf-8").splitlines():
        # As in "1Co13:4 Charity suffereth long".
        found = re.fullmatch(r"(\d?[A-Za-z]+)\d+:\d+ (.*)", line)
        if found is None:
            raise ValueError(f"{path}: {line!r}; expected: a book, chapter, verse and its text")
        book = books.setdefault(found[1], len(books))
        verses.append((book, found[1], len(found[2].split()), found[2]))
    if len(books) != BOOKS:
        raise ValueError(f"{path}: {len(books)} books; expected: {BOOKS}")
    return verses


def main() -> None:
    """See above."""
    if len(sys.argv) != 3:
        sys.exit("usage: verses.py TEXT DIRECTORY")
    directory = pathlib.Path(sys.argv[2])
    verses = read_verses(pathlib.Path(sys.argv[1]))
    directory.mkdir(parents=True, exist_ok=True)
    for name, held_out in (("train.csv", False), ("test.csv", True)):
        with open(directory / name, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("book", "name", "words", "text"))
            for verse in verses:
                if (zlib.crc32(f"{verse[1]} {verse[3]}".encode()) % HELD_OUT == 0) == held_out:
                    writer.writerow(verse)


if __name__ == "__main__":
    main()
