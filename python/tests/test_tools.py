"""The programs that write data files."""

import csv
import importlib.util
import math
import pathlib
import struct
import sys
from types import ModuleType
from typing import Any, List

import pytest

TOOLS = pathlib.Path(__file__).parent.parent / "tools"


def tool(name: str) -> ModuleType:
    """A program as a module."""
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def words(*values: int) -> bytes:
    """32-bit integers as R writes them."""
    return struct.pack(f">{len(values)}i", *values)


def text(value: str) -> bytes:
    """A string of R's."""
    return words(0x40009, len(value)) + value.encode()


def unserialize(data: bytes, version: int = 2) -> Any:
    """Of R's serialisation without its beginning."""
    native = words(5) + b"UTF-8" if version == 3 else b""
    return tool("ratings").Unserializer(b"X\n" + words(version, 0, 0) + native + data).item()


def test_vectors_of_r_are_lists() -> None:
    assert unserialize(words(13, 2, 7, -7)) == [7, -7]
    assert unserialize(words(14, 1) + struct.pack(">d", 0.5), version=3) == [0.5]
    assert unserialize(words(16, 2) + text("a") + text("bc")) == ["a", "bc"]
    assert unserialize(words(254)) is None


def test_attributes_stand_beside_the_values_and_symbols_may_come_again() -> None:
    levels = words(1) + text("levels")
    first = (
        words(13 | 0x200, 1, 1) + words(2 | 0x400) + levels + words(16, 1) + text("x") + words(254)
    )
    again = (
        words(13 | 0x200, 1, 1)
        + words(2 | 0x400, 1 << 8 | 255)
        + words(16, 1)
        + text("y")
        + words(254)
    )
    assert unserialize(words(19, 2) + first + again) == [
        ([1], {"levels": ["x"]}),
        ([1], {"levels": ["y"]}),
    ]


@pytest.mark.parametrize(
    "data", [words(13, 2, 7), words(13, -1), words(3), b"", words(2, 13, 1, 1, 5)]
)
def test_what_is_no_data_of_r_is_an_error(data: bytes) -> None:
    with pytest.raises((ValueError, struct.error)):
        unserialize(data)


def write_verses(folder: pathlib.Path, books: int) -> List[str]:
    """A text as `bible` prints it, of which each book has three verses."""
    lines = [
        f"B{chr(97 + b // 26)}{chr(97 + b % 26)}1:{v} Verse, of {b} {v}"
        for b in range(books)
        for v in (1, 2, 3)
    ]
    (folder / "bible.txt").write_text("\n".join(lines) + "\n")
    return lines


def test_verses_are_in_one_of_two_files(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = write_verses(tmp_path, 66)
    monkeypatch.setattr(
        sys, "argv", ["verses.py", str(tmp_path / "bible.txt"), str(tmp_path / "out")]
    )
    tool("verses").main()
    rows = {}
    for name in ("train", "test"):
        with open(tmp_path / "out" / f"{name}.csv", newline="") as file:
            rows[name] = list(csv.reader(file))
        assert rows[name].pop(0) == ["book", "name", "words", "text"]
    assert 5 < len(rows["test"]) < 50
    verses = sorted(
        (int(book), name, int(count), verse)
        for part in rows.values()
        for book, name, count, verse in part
    )
    assert verses == sorted(
        (i // 3, line.split("1:")[0], 4, line.split(" ", 1)[1]) for i, line in enumerate(lines)
    )
    words = (tmp_path / "out" / "words.txt").read_text().split()
    numbers = {word: int(number) for number, word in zip(words[::2], words[1::2])}
    assert sorted(numbers.values()) == list(range(2, len(numbers) + 2))
    for name, part in rows.items():
        sparse = (tmp_path / "out" / f"{name}.libsvm").read_text().splitlines()
        assert len(sparse) == len(part)
        for line, (book, _, _, verse) in zip(sparse, part):
            label, *pairs = line.split()
            assert label == ("+1" if int(book) >= 39 else "-1")
            found = {int(index): float(value) for index, value in (p.split(":") for p in pairs)}
            assert list(found) == sorted(found)
            assert found.pop(1) == pytest.approx(math.log1p(4), abs=1e-4)
            parts = verse.replace(",", "").lower().split()
            assert found == {numbers[word]: parts.count(word) for word in parts}


def test_another_text_is_refused(tmp_path: pathlib.Path) -> None:
    write_verses(tmp_path, 65)
    with pytest.raises(ValueError, match="65 books; expected: 66"):
        tool("verses").read_verses(tmp_path / "bible.txt")
    (tmp_path / "bible.txt").write_text("Once upon a time\n")
    with pytest.raises(
        ValueError, match="'Once upon a time'; expected: a book, chapter, verse and its text"
    ):
        tool("verses").read_verses(tmp_path / "bible.txt")
