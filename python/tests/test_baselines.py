"""bench/baselines, which the ready jobs are held beside."""

import importlib.util
import pathlib
from types import ModuleType

import numpy as np
import pytest

PROGRAM = pathlib.Path(__file__).parent.parent.parent / "bench" / "baselines" / "baselines.py"


@pytest.fixture(name="baselines")
def fixture_baselines() -> ModuleType:
    """The program as a module."""
    spec = importlib.util.spec_from_file_location("baselines", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_auc_is_the_share_of_pairs_in_order(baselines: ModuleType) -> None:
    random = np.random.RandomState(1)
    labels = random.randint(0, 2, 200)
    scores = random.randint(0, 10, 200) / 4 + labels
    ones, zeros = scores[labels == 1][:, None], scores[labels == 0][None, :]
    pairs = (ones > zeros).mean() + (ones == zeros).mean() / 2
    assert baselines.auc(scores, labels) == pytest.approx(pairs)


def test_logistic_regression_stands_still_where_the_gradient_is_none(
    baselines: ModuleType,
) -> None:
    random = np.random.RandomState(2)
    fields = np.stack([random.randint(0, 3, 500), random.randint(3, 7, 500)], 1)
    labels = (random.rand(500) < 1 / (1 + np.exp(-(fields[:, 0] - 1.0)))).astype(np.int64)
    weights = baselines.fit_logistic(fields, labels, 7, penalty=0.5)
    errors = 1 / (1 + np.exp(-weights[fields].sum(1))) - labels
    gradient = 0.5 * weights + sum(np.bincount(fields[:, i], errors, 7) for i in (0, 1))
    assert np.abs(gradient).max() < 1e-6
    assert weights[2] > weights[0]


def test_biases_are_those_of_a_ridge_regression(baselines: ModuleType) -> None:
    random = np.random.RandomState(3)
    users, items = random.randint(0, 5, 100), random.randint(0, 4, 100)
    ratings = random.rand(100)
    mean, of_users, of_items = baselines.fit_biases(users, items, ratings, (2.0, 3.0))
    design = np.concatenate([np.eye(5)[users], np.eye(4)[items]], 1)
    penalty = np.diag([2.0] * 5 + [3.0] * 4)
    exact = np.linalg.solve(design.T @ design + penalty, design.T @ (ratings - ratings.mean()))
    assert mean == pytest.approx(ratings.mean())
    assert np.concatenate([of_users, of_items]) == pytest.approx(exact, abs=1e-6)


def test_values_that_are_new_in_the_test_have_the_number_0(baselines: ModuleType) -> None:
    train, test, count = baselines.number(["b", "a", "b"], ["a", "c"])
    assert (train.tolist(), test.tolist(), count) == ([2, 1, 2], [1, 0], 3)


def test_a_missing_file_says_how_to_fetch_it(baselines: ModuleType, tmp_path: pathlib.Path) -> None:
    with pytest.raises(SystemExit, match="fetch-data"):
        baselines.ratings(tmp_path)
