#!/usr/bin/env python3
"""Computes the statistics of comparisons anew: check_statistics.py DIRECTORY...

Each directory holds what `rubato compare` leaves: summary.json, and metrics.jsonl of each run. All
numbers of `against_baseline` and `to_target` are computed from the run records with SciPy and NumPy,
and have to agree.
"""

import itertools
import json
import math
import pathlib
import sys
from typing import Any, Callable, Optional

import numpy as np
import scipy.stats  # type: ignore[import]

Array = Any
Run = dict[str, Any]
Statistic = Callable[..., Array]
EFFORTS = {
    "seconds": "seconds_to_target",
    "samples": "samples_to_target",
    "updates": "updates_to_target",
}
# Up to here the program looks at every resample, and every exchange.
ALL_RESAMPLES, ALL_EXCHANGES = 8, 16


def updates_by(progress: list[Run], epoch: float) -> float:
    """In sync steps, otherwise steps of all workers, between the progress lines in proportion."""
    epochs = [0.0] + [line["epoch"] for line in progress]
    done = [0.0] + [
        line["step"] if line["mode"] == "SYNC" else sum(line["staleness_counts"])
        for line in progress
    ]
    return float(np.interp(epoch, epochs, done))


def read_run(path: pathlib.Path, target: float) -> Run:
    lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text("utf-8").splitlines()]
    of = {
        kind: [line[kind] for line in lines if kind in line]
        for kind in ("start", "progress", "evaluation", "end")
    }
    progress, evaluations, end = of["progress"], of["evaluation"], of["end"][0]
    train_examples = of["start"][0]["train_examples"]
    run: Run = {"ok": end["ok"], "final_accuracy": evaluations[-1]["accuracy"]}
    run["examples_per_second"] = end["examples_per_second"]
    hits = [line for line in evaluations if line["accuracy"] >= target]
    run["reached"] = bool(hits)
    epoch = hits[0]["epoch"] if hits else progress[-1]["epoch"]
    run["seconds"] = hits[0]["t"] if hits else end["t"]
    run["samples"] = epoch * train_examples
    run["updates"] = updates_by(progress, epoch)
    return run


# What a run spent until the target is one number, negative if the run missed it, so that SciPy's
# resampling can carry it.
def signed(run: Run, effort: str) -> float:
    return float(run[effort] if run["reached"] else -run[effort])


def restricted_mean(durations: Array, horizon: float) -> Array:
    """The area under the Kaplan-Meier curve, along the last axis."""
    at, missed = np.abs(durations), durations < 0
    order = np.lexsort((missed, at), axis=-1)
    at, missed = np.take_along_axis(at, order, -1), np.take_along_axis(missed, order, -1)
    count = at.shape[-1]
    share = np.cumprod(np.where(missed, 1.0, 1 - 1 / np.arange(count, 0, -1)), axis=-1)
    ends = np.minimum(at, horizon)
    first, last = ends[..., :1], ends[..., -1:]
    widths = np.concatenate([first, np.diff(ends, axis=-1), horizon - last], axis=-1)
    shares = np.concatenate([np.ones_like(first), share], axis=-1)
    return np.sum(widths * shares, axis=-1)


def horizon_of(groups: list[Array]) -> float:
    limits = [np.max(np.abs(group)) for group in groups if -np.max(np.abs(group)) in group]
    return float(min(limits) if limits else max(np.max(group) for group in groups))


def expanded_tail(pairs: int) -> float:
    t = scipy.stats.t.ppf(0.975, pairs - 1)
    return float(scipy.stats.norm.cdf(-math.sqrt(pairs / (pairs - 1)) * t))


def unchanged(value: Array) -> Array:
    return value


def exponential(value: Array) -> Array:
    return np.exp(value)


def logarithm(value: Array) -> Array:
    return np.log(value)


def exact_interval(x: Array, y: Array, statistic: Statistic) -> tuple[float, float]:
    pairs, tail = len(x), expanded_tail(len(x))
    drawn = np.array(list(itertools.combinations_with_replacement(range(pairs), pairs)))
    times = np.stack([np.count_nonzero(drawn == i, axis=1) for i in range(pairs)], axis=1)
    weights = scipy.stats.multinomial.pmf(times, n=pairs, p=np.full(pairs, 1 / pairs))
    values = statistic(x[drawn], y[drawn], axis=-1)
    order = np.argsort(values)
    values, below = values[order], np.cumsum(weights[order])
    above = np.cumsum(weights[order][::-1])[::-1]
    return float(values[below >= tail][0]), float(values[above >= tail][-1])


def check_interval(
    found: Run, x: Array, y: Array, statistic: Statistic, back: Statistic, name: str
) -> None:
    if len(x) <= ALL_RESAMPLES:
        for field, value in zip(("low", "high"), exact_interval(x, y, statistic)):
            check(found[field], float(back(value)), 1e-9, f"{name}, {field}")
        return
    level = 1 - 2 * expanded_tail(len(x))
    result = scipy.stats.bootstrap(
        (x, y), statistic, paired=True, vectorized=True, axis=-1, n_resamples=40000, batch=10000,
        confidence_level=level, method="percentile", random_state=1,
    )  # fmt: skip
    # Of 10,000 resamples, a percentile this far out is known to a few hundredths of that error.
    tolerance = 0.15 * result.standard_error
    invert = logarithm if back is exponential else unchanged
    for field, value in zip(("low", "high"), result.confidence_interval):
        check(float(invert(found[field])), value, tolerance, f"{name}, {field}")


def p_of(x: Array, y: Array, statistic: Statistic) -> float:
    result = scipy.stats.permutation_test(
        (x, y), statistic, permutation_type="samples", vectorized=True, axis=-1, random_state=1,
        n_resamples=np.inf if len(x) <= ALL_EXCHANGES else 40000, batch=10000,
    )  # fmt: skip
    return float(result.pvalue)


def holm(p: list[float]) -> list[float]:
    order = np.argsort(p)
    scaled = np.maximum.accumulate([p[i] * (len(p) - rank) for rank, i in enumerate(order)])
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(scaled, 1)
    return [float(value) for value in adjusted]


checked = 0


def check(found: Optional[float], expected: Optional[float], tolerance: float, name: str) -> None:
    global checked
    checked += 1
    if found is None or expected is None:
        assert found is expected, f"{name}: {found} is there, {expected} was expected"
        return
    close = abs(found - expected) <= tolerance * max(1, abs(expected) if tolerance < 1e-6 else 1)
    assert close, f"{name}: {found} is there, {expected} was expected"


def mean_difference(x: Array, y: Array, axis: int = -1) -> Array:
    return np.mean(x - y, axis=axis)


def mean_log_ratio(x: Array, y: Array, axis: int = -1) -> Array:
    return np.mean(np.log(x / y), axis=axis)


def restricted_log_ratio(horizon: float) -> Statistic:
    def statistic(x: Array, y: Array, axis: int = -1) -> Array:
        assert axis == -1
        return np.log(restricted_mean(x, horizon) / restricted_mean(y, horizon))

    return statistic


def check_result(
    found: Run, runs: dict[str, dict[int, Run]], baseline: str, name: str
) -> Optional[float]:
    """All but what concerns several modes. Returns p."""
    quantity, mode = found["quantity"], found["mode"]
    effort = next((key for key, value in EFFORTS.items() if value == quantity), None)
    seeds = sorted(runs[baseline])
    statistic: Statistic
    if effort is None:
        seeds = [seed for seed in seeds if runs[mode][seed]["ok"] and runs[baseline][seed]["ok"]]
        x, y = (
            np.array([runs[which][seed][quantity] for seed in seeds]) for which in (mode, baseline)
        )
        is_ratio = quantity == "examples_per_second"
        statistic = mean_log_ratio if is_ratio else mean_difference
    else:
        groups = {
            key: np.array([signed(run, effort) for run in value.values()])
            for key, value in runs.items()
        }
        horizon = horizon_of(list(groups.values()))
        check(found["up_to"], horizon, 1e-9, f"{name}, up_to")
        x, y = groups[mode], groups[baseline]
        check(found["missed"], np.count_nonzero(x < 0), 0, f"{name}, missed")
        check(found["baseline_missed"], np.count_nonzero(y < 0), 0, f"{name}, baseline_missed")
        is_ratio = True
        statistic = restricted_log_ratio(horizon)
    back = exponential if is_ratio else unchanged
    assert found["kind"] == ("ratio" if is_ratio else "difference"), name
    check(found["pairs"], len(x), 0, f"{name}, pairs")
    check(found["left_out"], len(runs[baseline]) - len(seeds), 0, f"{name}, left_out")
    check(found["estimate"], float(back(statistic(x, y))), 1e-9, f"{name}, estimate")
    check_interval(found, x, y, statistic, back, name)
    p = p_of(x, y, statistic)
    exact = len(x) <= ALL_EXCHANGES
    check(found["p"], p, 1e-9 if exact else 0.015, f"{name}, p")
    return p if exact else float(found["p"])


def check_to_target(found: Run, runs: dict[str, dict[int, Run]], mode: str, name: str) -> None:
    for effort in EFFORTS:
        groups = {
            key: np.array([signed(run, effort) for run in value.values()])
            for key, value in runs.items()
        }
        horizon = horizon_of(list(groups.values()))
        check(found["reached"], np.count_nonzero(groups[mode] > 0), 0, f"{name}, reached")
        check(found[effort]["up_to"], horizon, 1e-9, f"{name}, {effort} up to")
        mean = float(restricted_mean(groups[mode], horizon))
        check(found[effort]["restricted_mean"], mean, 1e-9, f"{name}, {effort}")


def check_comparison(directory: pathlib.Path) -> None:
    summary = json.loads((directory / "summary.json").read_text("utf-8"))
    target = summary["target_accuracy"]
    runs = {
        mode["mode"]: {
            run["seed"]: read_run(directory / run["directory"], target) for run in mode["runs"]
        }
        for mode in summary["modes"]
    }
    for mode in summary["modes"]:
        check_to_target(mode["to_target"], runs, mode["mode"], f"{directory.name}, {mode['mode']}")
    against = summary["against_baseline"]
    others = len(runs) - 1
    needed = next(n for n in itertools.count(1) if others * 2 / 2**n < 0.05)
    check(against["pairs_needed"], needed, 0, f"{directory.name}, pairs_needed")
    if against["seeds"] < 2:
        assert against["results"] == [], f"{directory.name}: one seed has results"
        return
    quantities = ["final_accuracy", "examples_per_second", *EFFORTS.values()]
    assert list(dict.fromkeys(result["quantity"] for result in against["results"])) == quantities
    for quantity in quantities:
        results = [result for result in against["results"] if result["quantity"] == quantity]
        assert len(results) == others, f"{directory.name}: {quantity} is not there for each mode"
        names = [f"{directory.name}, {result['mode']}, {quantity}" for result in results]
        p = [
            check_result(found, runs, against["baseline"], name)
            for found, name in zip(results, names)
        ]
        most = max(result["pairs"] for result in results)
        for found, name, adjusted in zip(
            results, names, holm([value for value in p if value is not None])
        ):
            check(found["p_holm"], adjusted, 1e-9, f"{name}, p_holm")
            enough = found["pairs"] >= 6 and most >= needed
            assert (
                found["enough_pairs"] == enough
            ), f"{name}: enough_pairs is {found['enough_pairs']}"


def main() -> None:
    for name in sys.argv[1:]:
        check_comparison(pathlib.Path(name))
    print(f"{checked} numbers of {len(sys.argv) - 1} comparisons agree")


main()
