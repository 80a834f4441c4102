"""Which rows a table of an EmbeddingBag keeps, and in what format."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import rubato
import rubato.torch
from bags import rows_of, wrap
from ranks import run_ranks
from rubato import errors
from rubato.torch import EmbeddingBag
from servers import real_only


def only_frequent_rows():
    with rubato.init():
        bag = EmbeddingBag(
            1,
            table="only",
            algorithm="sgd",
            learning_rate=1.0,
            initial_bound=0,
            admit_after=3,
            expire_after_steps=8,
        )
        model = nn.Sequential(bag)
        optimizer = wrap(model)
        rows = []
        for step in range(20):
            # The first key in five steps, the second in all, and others of every part.
            keys = [7] * (step < 5) + [8] + list(range(100, 4000))
            model(torch.tensor([keys])).sum().backward()
            optimizer.step()
            rows.append(rows_of(bag, torch.tensor([7, 8])).flatten().tolist())
        return rows


@real_only
def test_keys_are_admitted_with_their_third_push_and_expire():
    (rows,) = run_ranks(1, only_frequent_rows)
    assert [row[1] for row in rows] == [0.0, 0.0] + [float(-step) for step in range(1, 19)]
    assert [row[0] for row in rows] == [0.0, 0.0, -1.0, -2.0] + 9 * [-3.0] + 7 * [0.0]


def bf16_rows():
    with rubato.init():
        rows = []
        for number, format in enumerate(
            ({"push": "bf16"}, {"pull": "bf16"}, {"precision": "bf16"}, {})
        ):
            rows.append(
                EmbeddingBag(
                    1,
                    table=f"t{number}",
                    algorithm="sgd",
                    learning_rate=1.0,
                    initial_bound=0,
                    **format,
                )
            )
        model = nn.ModuleList(rows)
        optimizer = wrap(model)
        for bag in rows:
            (0.3 * bag(torch.tensor([[7]]))).sum().backward()
        optimizer.step()
        return [float(rows_of(bag, torch.tensor([7]))) for bag in rows]


@real_only
def test_rows_may_be_kept_and_sent_as_bf16():
    ((push, pull, precision, plain),) = run_ranks(1, bf16_rows)
    # To the nearest; on servers up or down at random.
    assert push == pull == -0.30078125
    assert precision in (-0.298828125, -0.30078125)
    assert plain == pytest.approx(-0.3, abs=1e-7)


def test_formats_that_there_are_not_are_named():
    with pytest.raises(errors.InvalidCall, match='push="fp16": float32, bf16 are allowed'):
        EmbeddingBag(4, table="users", push="fp16")


def with_few_rows():
    with rubato.init():
        bag = EmbeddingBag(
            1, table="only", algorithm="sgd", learning_rate=1.0, initial_bound=0, most_rows=256
        )
        model = nn.Sequential(bag)
        optimizer = wrap(model)
        for step in range(20):
            keys = torch.arange(1000) + 1000 * step
            model(keys[None]).sum().backward()
            optimizer.step()
        old, new = (rows_of(bag, torch.arange(1000) + first) for first in (0, 19000))
        return int((old != 0).sum()), int((new != 0).sum())


@real_only
def test_the_oldest_rows_go():
    # One row for each of 256 parts, which is of the last keys in nearly all of them.
    ((old, new),) = run_ranks(1, with_few_rows)
    assert old == 0 and 240 <= new <= 256
