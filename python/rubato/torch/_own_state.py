"""What a worker that trains with torch has for itself, for `Session.save` and `Session.load`."""

from __future__ import annotations

import inspect
import random
import sys
from typing import Any, BinaryIO, Iterable, Iterator, Optional

import torch

from rubato import errors
from rubato._library import Step
from rubato.torch._tensors import Model
from rubato.torch._training import Training


class TorchState:
    """Of one model and its wrapped optimizer. See rubato._own_state.OwnState."""

    def __init__(self, training: Training, optimizer: torch.optim.Optimizer, model: Model) -> None:
        self._training = training
        self._optimizer = optimizer
        self._own = dict(_untrained(model, training.parameters.tensors))
        self.keeps_weights = training.by_worker

    def why_not_now(self) -> Optional[str]:
        """See OwnState."""
        if self._training.has_gradients or self._training.is_exchanged:
            return "gradients of this step were computed already: to be called between step() and backward()"
        # Of apply="local" in the middle of a round.
        return self._training.why_not_pause() or None

    def described(self) -> dict[str, Any]:
        """See OwnState."""
        training = self._training
        specs = training.parameters.specs
        described = {
            "apply": training._options.apply,
            "optimizer": type(self._optimizer).__name__,
            "tensors": [[spec.name, list(spec.shape), spec.group] for spec in specs],
            "buffers": [[name, list(tensor.shape)] for name, tensor in self._own.items()],
        }
        tables = [[spec.name, spec.dimension, spec.algorithm] for spec in training.tables.specs]
        return {**described, "tables": tables} if tables else described

    def weights(self) -> Iterable[Any]:
        """See OwnState."""
        return (tensor.numpy() for tensor in self._training.parameters.weights)

    def resumed(self, step: Step) -> None:
        """See OwnState."""
        if not self.keeps_weights:
            self._training.resumed(step)
            return
        if step.rollbacks != self._training.rollbacks:
            raise errors.JobFailed(
                'the job went back to a checkpoint. With apply="worker" the weights are the workers\' own: start the '
                "job again from what they have saved"
            )
        self._training._new_step(step)

    def kept(self) -> dict[str, Any]:
        """See OwnState."""
        kept = {
            "buffers": {name: tensor.detach().cpu().clone() for name, tensor in self._own.items()},
            "random": _random_states(),
            "groups": [_values(group) for group in self._optimizer.param_groups],
        }
        if not self._training.on_servers:
            kept["optimizer"] = self._optimizer.state_dict()
            tensors = self._training.parameters.tensors
            kept["weights"] = [tensor.detach().cpu().clone() for tensor in tensors]
        return kept

    def check(self, kept: dict[str, Any]) -> None:
        """See OwnState. What `described` says fits already."""
        if len(kept["groups"]) != len(self._optimizer.param_groups):
            raise errors.Refused(
                f"it has {len(kept['groups'])} parameter groups, and the optimizer "
                f"{len(self._optimizer.param_groups)}"
            )

    def take(self, kept: dict[str, Any]) -> None:
        """See OwnState."""
        with torch.no_grad():
            for name, tensor in kept["buffers"].items():
                self._own[name].copy_(tensor)
            if self.keeps_weights:
                for parameter, weights in zip(self._training.parameters.tensors, kept["weights"]):
                    parameter.copy_(weights)
        if "optimizer" in kept:
            self._optimizer.load_state_dict(kept["optimizer"])
        else:
            for group, values in zip(self._optimizer.param_groups, kept["groups"]):
                group.update(values)
        _set_random_states(kept["random"])

    def write(self, obj: Any, file: BinaryIO) -> None:
        """See OwnState."""
        torch.save(obj, file)

    def read(self, file: BinaryIO) -> Any:
        """See OwnState."""
        options: dict[str, Any] = {}
        # Later ones read nothing but tensors unless they are told to.
        if "weights_only" in inspect.signature(torch.load).parameters:
            options["weights_only"] = False
        if not torch.cuda.is_available():
            options["map_location"] = "cpu"
        return torch.load(file, **options)


def _untrained(model: Model, trained: list[torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
    """Buffers, and parameters that servers do not have."""
    if not isinstance(model, torch.nn.Module):
        return
    yield from model.named_buffers()
    known = {id(tensor) for tensor in trained}
    for name, parameter in model.named_parameters():
        if id(parameter) not in known:
            yield name, parameter


def _values(group: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in group.items() if name != "params"}


def _random_states() -> dict[str, Any]:
    states: dict[str, Any] = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if "numpy" in sys.modules:
        states["numpy"] = sys.modules["numpy"].random.get_state()
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state_all()
    return states


def _set_random_states(states: dict[str, Any]) -> None:
    random.setstate(states["python"])
    torch.set_rng_state(states["torch"])
    if "numpy" in states:
        import numpy

        numpy.random.set_state(states["numpy"])
    # On another number of GPUs there is nothing to go on with.
    if torch.cuda.is_available() and len(states.get("cuda", ())) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(states["cuda"])
