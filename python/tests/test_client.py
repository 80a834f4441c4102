"""rubato.client: NumPy, without torch."""

from __future__ import annotations

import numpy as np
import pytest

import rubato
from ranks import run_ranks
from rubato.client import Client, Group


def line(algorithm, rate):
    """Fits y = 3 x - 1, each rank with half of the points."""
    with rubato.init() as session:
        tensors = {"w": np.full(1, 0.5, np.float32), "b": np.zeros((), np.float32)}
        client = Client(
            session,
            tensors,
            [Group(["w"], learning_rate=rate), Group(["b"], learning_rate=rate)],
            algorithm=algorithm,
        )
        x = np.arange(session.rank, 10, session.size, dtype=np.float32) / 10
        w, b = np.empty(1, np.float32), np.empty((), np.float32)
        assert not client.pull("w", w)
        while (step := client.begin()) is not None and step.step < 300:
            assert client.pull("w", w) and client.pull("b", b)
            error = w[0] * x + b - (3 * x - 1)
            client.grad("w")[0] = 2 * np.mean(error * x)
            client.push(["w"], examples=len(x))
            client.grad("b")[...] = 2 * np.mean(error)
            client.push(examples=len(x))
            assert client.wait(30.0)
        return float(w[0]), float(b)


@pytest.mark.parametrize("algorithm, rate", [("sgd", 0.8), ("adam", 0.1)])
def test_fits_a_line(algorithm, rate):
    results = run_ranks(2, line, algorithm, rate)
    assert results[0] == results[1]
    assert results[0] == pytest.approx((3.0, -1.0), abs=0.02)


def misuse():
    texts = []

    def said(call, *arguments, **options):
        with pytest.raises(rubato.RubatoError) as caught:
            call(*arguments, **options)
        texts.append(str(caught.value))

    with rubato.init() as session:
        w = {"w": np.zeros(2, np.float32)}
        said(Client, session, w, [Group(["w"])], algorithm="newton")
        said(Client, session, w, [])
        said(Client, session, w, [Group(["w"]), Group(["w"])])
        said(Client, session, w, [Group(["v"])])
        client = Client(session, w, [Group(["w"])])
        said(client.push)
        said(client.grad, "v")
        said(Client, session, w, [Group(["w"])])
        client.begin()
        said(client.push, ["w"], examples=0)
        said(client.begin)
        client.skip()
        assert client.begin().step == 1
    return texts


def test_misuse_is_told():
    texts = run_ranks(1, misuse)[0]
    expected = [
        'algorithm="newton"',
        '"w" is in no group',
        "is in group 0 and 1",
        'names "v"',
        "no step has begun",
        'no tensor "v"',
        "has a Client already",
        "examples=0",
        "not pushed",
    ]
    assert len(texts) == len(expected)
    for text, part in zip(texts, expected):
        assert part in text
