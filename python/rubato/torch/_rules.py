"""Torch's optimizers as rules of the servers: which ones there are, and with which values."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Mapping, Optional

import torch

from rubato import errors

Group = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Rule:
    """How servers update the weights."""

    algorithm: str
    initial_accumulator: float
    # A parameter group's values of now.
    values: Callable[[Group], dict[str, float]]


_INSTEAD = 'use apply="worker", where the optimizer itself steps on the mean gradient'


def rule_for(optimizer: torch.optim.Optimizer) -> Rule:
    """The rule that does what the optimizer does. Raises Unsupported, which names what servers do not do."""
    kind = _base_class(optimizer)
    find = _RULES.get(kind)
    if find is None:
        known = ", ".join(sorted(cls.__name__ for cls in _RULES))
        raise errors.Unsupported(
            f'apply="server": {kind.__name__} is no optimizer of servers ({known} are): {_INSTEAD}'
        )
    for number, group in enumerate(optimizer.param_groups):
        _refuse_options(kind.__name__, number, group)
    return find(optimizer.param_groups)


def mean_rule() -> Rule:
    """Servers average gradients; optimizers step on the workers."""
    return Rule("mean", 0.0, lambda group: _values(0.0, 0.0))


def subtraction_rule() -> Rule:
    """Servers subtract the mean of what is pushed; optimizers step on the workers."""
    return Rule("sgd", 0.0, lambda group: _values(1.0, 0.0))


def _base_class(optimizer: torch.optim.Optimizer) -> type:
    """The class itself: a subclass may step in its own way."""
    return type(optimizer)


def _values(lr: Any, weight_decay: Any, **others: Any) -> dict[str, float]:
    values = {"learning_rate": float(lr), "weight_decay": float(weight_decay)}
    values.update((name, float(value)) for name, value in others.items())
    return values


# Options that change what is computed, by the only value that servers know.
_ONLY = {
    "dampening": 0,
    "amsgrad": False,
    "centered": False,
    "maximize": False,
    "lr_decay": 0,
    "capturable": False,
    "differentiable": False,
}


def _refuse_options(name: str, number: int, group: Group) -> None:
    for option, only in _ONLY.items():
        value = group.get(option, only)
        if value != only:
            raise errors.Unsupported(
                f'apply="server": {name} with {option}={value} in group {number}: servers know {option}={only} alone; '
                f"{_INSTEAD}"
            )
    if name == "RMSprop" and group.get("momentum", 0) != 0:
        raise errors.Unsupported(
            f'apply="server": RMSprop with momentum={group["momentum"]} in group {number}: servers know momentum=0 '
            f"alone; {_INSTEAD}"
        )


def _sgd(groups: list[Any]) -> Rule:
    nesterov = {bool(group["nesterov"]) for group in groups}
    if len(nesterov) > 1:
        raise errors.Unsupported(
            f'apply="server": SGD with nesterov in some groups and not in others; {_INSTEAD}'
        )
    if not any(group["momentum"] for group in groups):
        return Rule("sgd", 0.0, lambda g: _values(g["lr"], g["weight_decay"]))
    algorithm = "nesterov" if nesterov == {True} else "momentum"
    return Rule(
        algorithm, 0.0, lambda g: _values(g["lr"], g["weight_decay"], momentum=g["momentum"])
    )


def _adam(algorithm: str) -> Callable[[list[Any]], Rule]:
    def values(g: Group) -> dict[str, float]:
        beta1, beta2 = g["betas"]
        return _values(g["lr"], g["weight_decay"], beta1=beta1, beta2=beta2, epsilon=g["eps"])

    return lambda groups: Rule(algorithm, 0.0, values)


def _rmsprop(groups: list[Any]) -> Rule:
    return Rule(
        "rmsprop",
        0.0,
        lambda g: _values(g["lr"], g["weight_decay"], rho=g["alpha"], epsilon=g["eps"]),
    )


def _adagrad(groups: list[Any]) -> Rule:
    initial = {float(group["initial_accumulator_value"]) for group in groups}
    if len(initial) > 1:
        raise errors.Unsupported(
            f'apply="server": Adagrad with several initial_accumulator_value ({sorted(initial)}); {_INSTEAD}'
        )
    return Rule(
        "adagrad", initial.pop(), lambda g: _values(g["lr"], g["weight_decay"], epsilon=g["eps"])
    )


_RULES: dict[type, Callable[[list[Any]], Rule]] = {
    torch.optim.SGD: _sgd,
    torch.optim.Adam: _adam("adam"),
    torch.optim.AdamW: _adam("adamw"),
    torch.optim.RMSprop: _rmsprop,
    torch.optim.Adagrad: _adagrad,
}


def why_not_worker(optimizer: torch.optim.Optimizer) -> Optional[str]:
    """Why an optimizer cannot step on the worker. None: it can."""
    if isinstance(optimizer, torch.optim.LBFGS):
        return "LBFGS computes gradients several times a step, and a step() here has those of one backward()"
    return None
