"""Being told when backward has accumulated a parameter's gradient."""

from __future__ import annotations

import weakref
from typing import Any, Callable, Sequence

import torch

OnGradient = Callable[[int], None]


def _has_post_accumulate(parameter: torch.Tensor) -> bool:
    return hasattr(parameter, "register_post_accumulate_grad_hook")


def _accumulate_node(parameter: torch.Tensor) -> Any:
    """The node that adds to parameter.grad. It exists as long as somebody holds it."""
    with torch.enable_grad():
        return parameter.expand_as(parameter).grad_fn.next_functions[0][0]


class GradientHooks:
    """Calls `on_gradient(i)` when backward has added to the gradient of parameter i.

    Before torch 2.1 the hook is on the parameter's AccumulateGrad node, which `.double()` and the like replace:
    `refresh` registers again if that has happened.
    """

    def __init__(self, parameters: Sequence[torch.Tensor], on_gradient: OnGradient) -> None:
        self._parameters = parameters
        self._on_gradient = on_gradient
        self._nodes: list[Any] = []
        self._handles: list[Any] = []
        for index, parameter in enumerate(parameters):
            node, handle = self._register(index, parameter)
            self._nodes.append(node)
            self._handles.append(handle)

    def refresh(self, index: int) -> None:
        """Registers the parameter's hook again if it was lost."""
        node, parameter = self._nodes[index], self._parameters[index]
        if node is not None and parameter.requires_grad and _accumulate_node(parameter) is not node:
            self._handles[index].remove()
            self._nodes[index], self._handles[index] = self._register(index, parameter)

    def remove(self) -> None:
        """Nothing is called any more."""
        for handle in self._handles:
            handle.remove()

    def _register(self, index: int, parameter: torch.Tensor) -> tuple[Any, Any]:
        # A hook lives as long as its parameter, which may outlive the optimizer.
        owner = weakref.WeakMethod(self._on_gradient)

        def call(*_: Any) -> None:
            on_gradient = owner()
            if on_gradient is not None:
                on_gradient(index)

        if _has_post_accumulate(parameter):
            return None, parameter.register_post_accumulate_grad_hook(call)  # type: ignore[attr-defined]
        node = _accumulate_node(parameter)
        return node, node.register_hook(call)
