"""A few combinations of factors in which every two values of two factors come together."""

from __future__ import annotations

import itertools


def pairs_of(case):
    """Every two (factor, value) of a combination."""
    return set(itertools.combinations(sorted(case.items()), 2))


def possible_pairs(factors, is_possible):
    """Those that are in a possible combination at all."""
    return set().union(*map(pairs_of, _combinations(factors, is_possible)))


def cover(factors, is_possible=lambda case: True):
    """Possible combinations with all possible pairs, the same in each call: always the one next that has the most new
    pairs (Cohen et al. 1997). `factors`: {name: values}.
    """
    candidates = [(case, pairs_of(case)) for case in _combinations(factors, is_possible)]
    missing = set().union(*(pairs for _, pairs in candidates))
    chosen = []
    while missing:
        case, pairs = max(candidates, key=lambda candidate: len(candidate[1] & missing))
        chosen.append(case)
        missing -= pairs
    return chosen


def _combinations(factors, is_possible):
    cases = (dict(zip(factors, values)) for values in itertools.product(*factors.values()))
    return [case for case in cases if is_possible(case)]
