"""Each example runs, alone and with two workers, on small data of the formats that it reads."""

from __future__ import annotations

import contextlib
import io
import pathlib
import random
import runpy
import sys

import pytest

from ranks import run_ranks
from servers import real_only
from soak import write_idx

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"


def write_mnist(folder, train, test):
    """So many pictures in MNIST's files: more of the upper rows are bright the larger the digit."""
    pictures = [bytes([25 * k] * 28 * 3 * k + [0] * 28 * (28 - 3 * k)) for k in range(10)]
    for part, count in (("train", train), ("t10k", test)):
        labels = [i % 10 for i in range(count)]
        pixels = b"".join(pictures[k] for k in labels)
        write_idx(folder / f"{part}-images-idx3-ubyte", (count, 28, 28), pixels)
        write_idx(folder / f"{part}-labels-idx1-ubyte", (count,), labels)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with MNIST of 256 pictures, and some verses."""
    folder = tmp_path_factory.mktemp("data")
    write_mnist(folder, 256, 64)
    choice = random.Random(3).choice
    words = {"Ge": "earth heaven light", "1Sa": "king battle tent", "Ps": "song praise harp"}
    lines = [
        f"{book}{i}:1 {' '.join(choice(words[book].split()) for _ in range(6))}"
        for i in range(1, 61)
        for book in words
    ]
    (folder / "bible.txt").write_text("\n".join(lines))
    return folder


CASES = {
    "simplenet.py": (["--steps=300"], "largest error of a weight 0.0"),
    "mnist.py": (["--epochs=4", "--examples=256", "--batch=16", "--target=0.5"], "accuracy"),
    "elastic_mnist.py": (
        ["--epochs=4", "--examples=256", "--batch=16", "--target=0.5"],
        "accuracy",
    ),
    "resnet_cifar.py": (["--epochs=1", "--examples=64", "--batch=16"], "accuracy"),
    "dlrm.py": (["--examples=4000", "--rows=50", "--batch=32"], "of a logistic regression 0."),
    "text_classifier.py": (["--epochs=2", "--batch=16"], "of a bag of words 100.0 %"),
}


def run_example(name, arguments):
    """What it prints."""
    sys.argv = [name, *arguments]
    sys.path.insert(0, str(EXAMPLES))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return printed.getvalue()


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=real_only) if name == "dlrm.py" else name for name in CASES],
)
def test_example(name, size, data):
    arguments, expected = CASES[name]
    if "mnist" in name:
        arguments = [*arguments, f"--data={data}"]
    if name == "text_classifier.py":
        arguments = [*arguments, f"--data={data / 'bible.txt'}"]
    assert expected in run_ranks(size, run_example, name, arguments)[0]


def test_every_example_is_tested():
    programs = {path.name for path in EXAMPLES.glob("*.py") if "__main__" in path.read_text()}
    assert programs == set(CASES)
