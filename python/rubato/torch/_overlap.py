"""Being called before modules compute, and before what they hold is read: overlap="forward" and "layer"."""

from __future__ import annotations

import weakref
from typing import Any, Callable, Optional, Sequence

import torch

# What a module is about to use: the positions of parameters, or None: all of them.
OnUse = Callable[[Optional[Sequence[int]]], None]

_Scripted: Any = getattr(torch.jit, "ScriptModule")


def _nothing(*_: Any) -> None:
    """What copies of a model have in the place of its hooks: nobody trains them."""


def _no_hook() -> Any:
    return _nothing


class _Hook:
    """A hook that is called in this model alone."""

    def __init__(self, on_use: OnUse, indices: Optional[Sequence[int]]) -> None:
        # It lives as long as the model, which may outlive the optimizer.
        self._on_use: Any = weakref.WeakMethod(on_use)
        self._indices = indices

    def __call__(self, *_: Any) -> None:
        on_use = self._on_use()
        if on_use is not None:
            on_use(self._indices)

    def __deepcopy__(self, _: Any) -> Any:
        return _nothing

    def __reduce__(self) -> Any:
        return _no_hook, ()


def watch(model: torch.nn.Module, parameters: Sequence[torch.Tensor], on_use: OnUse) -> None:
    """Calls `on_use`, a method, before each module's forward with the parameters that this one may use, and with None after
    the model's own forward and where a state_dict is made.

    A module that owns parameters may use those of its whole subtree: MultiheadAttention reads out_proj's without calling
    it. One that owns none leaves that to the modules in it, unless gradients are disabled: TransformerEncoderLayer then
    computes with theirs by itself.
    """
    positions = {id(parameter): index for index, parameter in enumerate(parameters)}
    for module in model.modules():
        owns = any(id(p) in positions for p in module.parameters(recurse=False))
        used: list[int] = []
        # What a scripted module calls has no hooks.
        if owns or isinstance(module, _Scripted):
            used = sorted({positions[id(p)] for p in module.parameters() if id(p) in positions})
        _register_first(module, _Hook(on_use, used))
        _before_state_dict(module, _Hook(on_use, None))
    model.register_forward_hook(_Hook(on_use, None))


def _register_first(module: torch.nn.Module, hook: _Hook) -> None:
    """Before hooks that compute with parameters themselves, as weight_norm's does."""
    register: Any = module.register_forward_pre_hook
    try:
        register(hook, prepend=True)
    except TypeError:  # Torch before 2.0.
        handle = register(hook)
        hooks: Any = module._forward_pre_hooks
        hooks.move_to_end(handle.id, last=False)


def _before_state_dict(module: torch.nn.Module, hook: _Hook) -> None:
    register: Any = getattr(module, "register_state_dict_pre_hook", None)
    # Before torch 2.0 afterwards: what is in a state_dict is the parameters' memory.
    register = register or getattr(module, "_register_state_dict_hook")
    register(hook)
