"""A model's parameters beside the memory that is shared with the sidecar."""

from __future__ import annotations

import math
from typing import Iterable, Iterator, Optional, Union

import torch

from rubato import errors
from rubato._library import Client
from rubato._specs import TensorSpec
from rubato.torch._gpu import GpuCopies
from rubato.torch._in_place import InPlace, may_move, shared_view

Model = Union[torch.nn.Module, Iterable[tuple[str, torch.Tensor]]]


class Parameters:
    """The parameters that an optimizer trains, in the model's order."""

    def __init__(self, optimizer: torch.optim.Optimizer, model: Model, tables: int = 0) -> None:
        """`tables`: how many there are besides, without which there has to be a parameter."""
        named = dict(
            model.named_parameters() if isinstance(model, torch.nn.Module) else list(model)
        )
        groups = {
            id(p): number
            for number, group in enumerate(optimizer.param_groups)
            for p in group["params"]
            if p.numel() > 0
        }
        self.names: list[str] = []
        # Of each parameter its version when it got the servers' weights.
        self._versions: list[int] = []
        self.tensors: list[torch.Tensor] = []
        self.specs: list[TensorSpec] = []
        for name, parameter in named.items():
            group = groups.pop(id(parameter), None)
            # One without gradients is left alone, as the optimizer leaves it; so is an empty one, which is in no group.
            if group is None or not parameter.requires_grad:
                continue
            _check(name, parameter)
            self.names.append(name)
            self.tensors.append(parameter)
            self.specs.append(TensorSpec(name, tuple(parameter.shape), group))
        if groups:
            raise errors.InvalidCall(
                f"{len(groups)} of the optimizer's parameters, the first in group {min(groups.values())}, are not "
                "among the model's: give the model that they belong to"
            )
        if not self.tensors and tables == 0:
            raise errors.InvalidCall("the optimizer has no parameter that needs a gradient")

    def __len__(self) -> int:
        return len(self.tensors)

    def share(self, client: Client, keep_weights: bool) -> None:
        """After rubato_define: has views of the shared memory, with the parameters as initial weights. `keep_weights`: as in
        ModelSpec; parameters move there then, where that is possible.
        """
        self._client = client
        owner = client.kept_weights
        self.weights = [
            shared_view(client.weights(i), p.shape, owner) for i, p in enumerate(self.tensors)
        ]
        self.gradients = [
            shared_view(client.gradient(i), p.shape) for i, p in enumerate(self.tensors)
        ]
        for weights, parameter in zip(self.weights, self.tensors):
            weights.copy_(parameter.detach())
        self._versions = [-1] * len(self)
        self._in_place = [
            InPlace(parameter, weights, owner) if keep_weights and moves else None
            for moves, parameter, weights in zip(may_move(self.tensors), self.tensors, self.weights)
        ]
        self._gpu: Optional[GpuCopies] = None
        if self.any_on_gpu():
            # One piece: all weights in the model's order, then all gradients.
            address = self.weights[0].data_ptr()
            last = self.gradients[-1]
            self._gpu = GpuCopies(address, last.data_ptr() + 4 * last.numel() - address)

    def stand_aside(self) -> None:
        """Parameters stay as they are while other weights come, until `take_weights`."""
        for one in self._in_place:
            if one is not None:
                one.stand_aside()

    def any_on_gpu(self) -> bool:
        """Whether one of them is on a GPU."""
        return any(parameter.is_cuda for parameter in self.tensors)

    def release(self) -> None:
        """Before the shared memory goes away."""
        if self._gpu is not None:
            self._gpu.release()
        self._gpu = None
        for one in self._in_place:
            if one is not None:
                one.leave()
        self._in_place = [None] * len(self)

    def take_weights(self) -> None:
        """The servers' weights are in the parameters. Autograd sees it as the optimizer's update in place."""
        elsewhere = []
        for index, one in enumerate(self._in_place):
            if one is not None and one.come_back():
                one.has_changed()
            else:
                elsewhere.append(index)
        if elsewhere:
            self._copy([self.tensors[i] for i in elsewhere], [self.weights[i] for i in elsewhere])
        self._versions = [parameter._version for parameter in self.tensors]

    def changed(self) -> Optional[str]:
        """The first parameter that somebody else has given other values since it got the servers' weights; None: there is
        none. To be called before the step's first push: the shared weights are the step's until then.
        """
        for index, (parameter, version) in enumerate(zip(self.tensors, self._versions)):
            # Whoever puts others' weights in place for an evaluation has put these back.
            if parameter._version != version and not self._has_weights(index):
                return self.names[index]
        return None

    def _has_weights(self, index: int) -> bool:
        one, parameter, weights = self._in_place[index], self.tensors[index], self.weights[index]
        if one is not None and one.is_there():
            return self._client.has_weights(index)
        return torch.equal(parameter.detach().to("cpu", weights.dtype), weights)

    def take(self, index: int) -> None:
        """As take_weights, of one parameter."""
        self._copy([self.tensors[index]], [self.weights[index]])
        self._versions[index] = self.tensors[index]._version

    def give_movement(self) -> None:
        """apply="local": where each parameter was, which the shared weights still say, minus where it is, as the gradient."""
        with torch.no_grad():
            for weights, gradient, parameter in zip(self.weights, self.gradients, self.tensors):
                gradient.copy_(parameter)
                torch.sub(weights, gradient, out=gradient)

    def take_gradients(self) -> None:
        """apply="worker": what the servers have is the mean gradient."""
        for parameter in self.tensors:
            if parameter.grad is None:
                parameter.grad = torch.empty_like(parameter)
        self._copy([p.grad for p in self.tensors if p.grad is not None], self.weights)

    def gradient_norm(self) -> float:
        """Of all gradients together."""
        norms = [
            float(torch.linalg.vector_norm(p.grad.detach()))
            for p in self.tensors
            if p.grad is not None
        ]
        return math.sqrt(sum(norm * norm for norm in norms))

    def give_gradient(self, index: int, factor: float) -> bool:
        """Copies a gradient, times `factor`, to the shared memory. Whether it is there; if not, `arrived` has it later."""
        gradient = self.tensors[index].grad
        assert gradient is not None
        shared = self.gradients[index]
        if self._gpu is not None and gradient.is_cuda:
            self._gpu.from_gpu(index, shared, gradient, factor)
            return False
        shared.copy_(gradient.detach())
        if factor != 1.0:
            shared.mul_(factor)
        return True

    def arrived(self, wait: bool) -> Iterator[int]:
        """Gradients that were given, and are there now; with `wait` each as it comes, until all are there."""
        return iter(()) if self._gpu is None else self._gpu.arrived(wait)

    def wait_until_taken(self) -> None:
        """Before the first push of a step, after which the shared weights may get other values: they were copied."""
        if self._gpu is not None:
            self._gpu.wait_for_weights()

    def _copy(self, targets: list[torch.Tensor], shared: list[torch.Tensor]) -> None:
        if self._gpu is not None:
            self._gpu.to_gpu(targets, shared)
            return
        with torch.no_grad():
            for target, source in zip(targets, shared):
                target.copy_(source)


def _check(name: str, parameter: torch.Tensor) -> None:
    if parameter.dtype != torch.float32:
        raise errors.Unsupported(
            f"parameter {name} is of {parameter.dtype}: servers hold torch.float32 alone; keep the parameters in "
            "float32 and compute in others by torch.autocast"
        )
    if parameter.layout != torch.strided:
        raise errors.Unsupported(
            f"parameter {name} has the layout {parameter.layout}: torch.strided is allowed"
        )
