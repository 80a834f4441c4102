"""Writes the verses of the King James Bible as CSV files and in LIBSVM's format, from the text that Debian's
`bible` prints.

    verses.py TEXT DIRECTORY

A line of train.csv or test.csv has the number of its book, 0 to 65, the book's short name, how many words the verse
has, and its text. About every tenth verse, chosen by a hash of its line, is in test.csv, and the others are in
train.csv.

train.libsvm and test.libsvm have the same verses: the label is 1 in the New Testament and -1 in the Old one, index 1
is the logarithm of how many words the verse has, and those from 2 on are words, numbered as in words.txt, with how
often the verse has them.
"""

from __future__ import annotations

import collections
import csv
import math
import pathlib
import re
import sys
import zlib

BOOKS = 66
HELD_OUT = 10
FIRST_OF_NEW_TESTAMENT = 39
FIRST_WORD = 2


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


def words_of(text: str) -> list[str]:
    """Runs of letters and digits, in lower case."""
    return re.findall("[a-z0-9]+", text.lower())


def libsvm_line(book: int, text: str, numbers: dict[str, int]) -> str:
    """A verse, given the numbers of words."""
    counts = collections.Counter(numbers[word] for word in words_of(text))
    label = "+1" if book >= FIRST_OF_NEW_TESTAMENT else "-1"
    pairs = [f"1:{math.log1p(sum(counts.values())):.4f}"]
    return " ".join([label] + pairs + [f"{number}:{counts[number]}" for number in sorted(counts)])


def main() -> None:
    """See above."""
    if len(sys.argv) != 3:
        sys.exit("usage: verses.py TEXT DIRECTORY")
    directory = pathlib.Path(sys.argv[2])
    verses = read_verses(pathlib.Path(sys.argv[1]))
    directory.mkdir(parents=True, exist_ok=True)
    vocabulary = sorted({word for verse in verses for word in words_of(verse[3])})
    numbers = {word: number for number, word in enumerate(vocabulary, FIRST_WORD)}
    text = "".join(f"{number} {word}\n" for word, number in numbers.items())
    (directory / "words.txt").write_text(text, encoding="utf-8")
    for name, held_out in (("train", False), ("test", True)):
        part = [
            verse
            for verse in verses
            if (zlib.crc32(f"{verse[1]} {verse[3]}".encode()) % HELD_OUT == 0) == held_out
        ]
        with open(directory / f"{name}.csv", "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("book", "name", "words", "text"))
            writer.writerows(part)
        lines = "".join(libsvm_line(verse[0], verse[3], numbers) + "\n" for verse in part)
        (directory / f"{name}.libsvm").write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main()
