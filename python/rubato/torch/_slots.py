"""The state of torch's optimizers, as servers keep it: which of torch's names is which slot."""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping, Optional

import torch

from rubato import errors
from rubato._library import Client
from rubato.torch._tensors import Parameters

# In the order of rubato_set_state.
_SLOTS: dict[type, tuple[str, ...]] = {
    torch.optim.SGD: ("momentum_buffer",),
    torch.optim.Adam: ("exp_avg", "exp_avg_sq"),
    torch.optim.AdamW: ("exp_avg", "exp_avg_sq"),
    torch.optim.RMSprop: ("square_avg",),
    torch.optim.Adagrad: ("sum",),
}


@dataclasses.dataclass(frozen=True)
class Layout:
    """How this version of torch has an optimizer's state."""

    kind: type
    slots: tuple[str, ...]
    # What `step` is after one step. None: there is none.
    step: Any
    # A new optimizer has its state before it steps.
    from_the_start: bool

    def steps(self, count: int) -> dict[str, Any]:
        """The entry that counts steps."""
        if self.step is None:
            return {}
        if isinstance(self.step, torch.Tensor):
            return {"step": torch.full_like(self.step, count)}
        return {"step": type(self.step)(count)}


def layout_of(optimizer: torch.optim.Optimizer, algorithm: str) -> Layout:
    """Of an optimizer that servers know, wrapped or not."""
    kind = next(cls for cls in type(optimizer).__mro__ if cls in _SLOTS)
    probe = torch.zeros(1, requires_grad=True)
    trial = kind([probe], lr=0.1)
    from_the_start = bool(trial.state.get(probe))
    probe.grad = torch.zeros(1)
    trial.step()
    slots = () if algorithm == "sgd" else _SLOTS[kind]
    return Layout(kind, slots, trial.state[probe].get("step"), from_the_start)


def give_state(
    optimizer: torch.optim.Optimizer, algorithm: str, parameters: Parameters, client: Client
) -> None:
    """Tells the servers what the optimizer has of steps that it has made. Before rubato_start.

    Raises Unsupported for what they do not keep, InvalidCall for what does not fit.
    """
    layout = layout_of(optimizer, algorithm)
    for index, parameter in enumerate(parameters.tensors):
        state = optimizer.state.get(parameter) or {}
        _refuse_unknown(layout, parameters.names[index], state)
        updates = int(float(state.get("step", 1)))
        for slot, name in enumerate(layout.slots):
            value = state.get(name)
            if value is None or (updates == 0 and layout.from_the_start):
                continue
            values = _checked(value, name, parameters.names[index], parameter)
            client.set_state(index, slot, values.data_ptr(), updates)


def _refuse_unknown(layout: Layout, parameter: str, state: Mapping[str, Any]) -> None:
    for name, value in state.items():
        if name == "step" or name in _SLOTS[layout.kind] or value is None:
            continue
        raise errors.Unsupported(
            f'apply="server": the optimizer has the state {name} of {parameter}: servers know '
            f"{', '.join(_SLOTS[layout.kind])} of {layout.kind.__name__}; use apply=\"worker\""
        )


def _checked(value: Any, name: str, owner: str, parameter: torch.Tensor) -> torch.Tensor:
    if not isinstance(value, torch.Tensor) or value.shape != parameter.shape:
        what = tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
        raise errors.InvalidCall(
            f"the optimizer's state {name} of {owner} is {what}, and the parameter {tuple(parameter.shape)}"
        )
    return value.detach().to("cpu", torch.float32).contiguous()


def fetch_state(
    layout: Layout, parameters: Parameters, client: Client
) -> dict[torch.Tensor, dict[str, Any]]:
    """The state of each parameter that servers update, in torch's layout. Between rubato_begin and the first push."""
    updates: Optional[list[int]] = None
    found: list[dict[str, Any]] = [{} for _ in parameters.tensors]
    for slot, name in enumerate(layout.slots):
        counts = client.fetch_state(slot, len(parameters))
        # Both slots of a parameter are said to be of the same step, also where others push meanwhile.
        updates = updates or counts
        for entry, gradient, parameter in zip(found, parameters.gradients, parameters.tensors):
            entry[name] = gradient.to(parameter.device, copy=True)
    result = {}
    for parameter, entry, count in zip(parameters.tensors, found, updates or []):
        if count > 0 or layout.from_the_start:
            result[parameter] = {**layout.steps(count), **entry}
    return result
