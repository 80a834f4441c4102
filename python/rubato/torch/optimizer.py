"""`DistributedOptimizer`: an optimizer whose steps are those of the job."""

from __future__ import annotations

import collections
import contextlib
from typing import Any, Callable, Iterator, Optional, TypeVar

import torch

from rubato import errors
from rubato.session import Session, current_session
from rubato.torch import _overlap
from rubato.torch._host_memory import keep_freed_memory
from rubato.torch._local import LocalTraining
from rubato.torch._own_state import TorchState
from rubato.torch._rules import Rule, mean_rule, rule_for, subtraction_rule, why_not_worker
from rubato.torch._slots import fetch_state, give_state, layout_of
from rubato.torch._step import Options
from rubato.torch._tables import Tables
from rubato.torch._tensors import Model, Parameters
from rubato.torch._training import Training

O = TypeVar("O", bound=torch.optim.Optimizer)


def DistributedOptimizer(
    optimizer: O,
    model: Model,
    *,
    apply: str = "server",
    sync_every: int = 1,
    overlap: str = "step",
    push: str = "backward",
    accumulate: int = 1,
    weight: str = "workers",
    clip_norm: Optional[float] = None,
    unused: str = "zero",
    session: Optional[Session] = None,
) -> O:
    """Makes an optimizer train with all workers of the session, and returns it: the same object.

    All ranks then have the weights of rank 0, or those of the checkpoint that the job goes on from. `step()` returns
    with the weights of the next step in the parameters, unless `overlap` says otherwise. An optimizer that has state,
    of a checkpoint of torch's for one, goes on with it: with apply="server" that of rank 0 counts, otherwise each
    rank's own.

    apply: "server": the servers do what SGD (with momentum or Nesterov), Adam, AdamW, RMSprop or Adagrad would, with
      the values of each parameter group, which schedulers may change. "worker": servers average gradients and the
      optimizer itself steps on each worker, whichever it is; mode sync alone. "local": the optimizer itself steps on each
      worker, on the worker's own gradient; weights are exchanged after every `sync_every` steps, in all modes.
    push: "backward": each gradient is sent when it is complete, while others are computed. "step": in `step()`. With
      "local" no gradient is sent, and both are the same.
    accumulate: how many backward() there are to a step; gradients are added up, as torch does.
    weight: what a worker counts in the mean: "workers": all the same. "examples": by `set_examples(n)`.
    clip_norm: the largest norm of the gradient: of each worker's with "server" and "local", of their mean with
      "worker".
    unused: a parameter that has no gradient in a step (with "local": in all steps between two exchanges) counts as "zero",
      or is left out: "skip" (not with "worker").
    overlap: where the weights of the next step are waited for: "step": in `step()`. With "server" also "forward": where the
      model, or a module of it, is called next, or its state_dict is made; or "layer": a module that owns parameters waits
      for those of its own subtree, and the model's forward returns with all. Whoever uses parameters in another way between
      `step()` and the next forward calls `synchronize()` first.

    A model on the CPU has the process keep memory that torch frees, for the next step: MALLOC_TRIM_THRESHOLD_ in the
    environment, or another of glibc's settings of when to give memory back, is left as it is.

    The optimizer gets the methods `synchronize()`, `no_sync()`, `skip()` and `set_examples(n)`.

    Raises Unsupported for what the servers cannot do, Refused if the models of workers differ.
    """
    options = _checked(apply, sync_every, overlap, push, accumulate, weight, clip_norm, unused)
    if isinstance(optimizer, _Distributed):
        raise errors.InvalidCall("the optimizer is a DistributedOptimizer already")
    if overlap != "step" and not _overlap.can_watch(model):
        raise errors.InvalidCall(
            f'overlap="{overlap}": give the module, which is not a scripted one, instead of named parameters: its forward '
            "is what waits"
        )
    rule = _rule(apply, optimizer)
    tables = Tables(model)
    if len(tables) > 0 and apply == "local":
        raise errors.Unsupported(
            f'apply="local" with EmbeddingBag (table {tables.specs[0].name}): rows get gradients in each step of the job, and '
            'local steps exchange none; use "server" or "worker"'
        )
    parameters = Parameters(optimizer, model, len(tables))
    if any(not parameter.is_cuda for parameter in parameters.tensors):
        keep_freed_memory()
    kind_of_training = LocalTraining if apply == "local" else Training
    here = session or current_session()
    if apply == "server":
        here._before_start = lambda: give_state(optimizer, rule.algorithm, parameters, here._client)
    training = kind_of_training(here, optimizer, parameters, tables, rule, options)
    # Schedulers and others that hold the optimizer see the same object, with other methods. A scheduler that was made
    # before has put its own `step` into the object, which would go past these methods.
    optimizer.__dict__.pop("step", None)
    kind = type(optimizer)
    optimizer.__class__ = type(kind.__name__, (_Distributed, kind), {"__module__": kind.__module__})
    optimizer._rubato = training  # type: ignore[attr-defined]
    if isinstance(model, torch.nn.Module) and training.overlaps:
        _overlap.watch(model, parameters.tensors, training.on_use)
    if apply == "server":
        # The servers have it.
        for parameter in parameters.tensors:
            optimizer.state.pop(parameter, None)
    here._own = TorchState(training, optimizer, model)
    return optimizer


def _rule(apply: str, optimizer: torch.optim.Optimizer) -> Rule:
    if apply == "server":
        return rule_for(optimizer)
    reason = why_not_worker(optimizer)
    if reason:
        raise errors.Unsupported(f'apply="{apply}": {reason}')
    return mean_rule() if apply == "worker" else subtraction_rule()


def _checked(
    apply: str,
    sync_every: int,
    overlap: str,
    push: str,
    accumulate: int,
    weight: str,
    clip_norm: Optional[float],
    unused: str,
) -> Options:
    _one_of("apply", apply, "server", "worker", "local")
    _one_of("overlap", overlap, "step", "forward", "layer")
    if overlap != "step" and apply != "server":
        raise errors.Unsupported(
            f'overlap="{overlap}" is for apply="server": with "{apply}" the optimizer changes weights in step() itself'
        )
    _one_of("push", push, "backward", "step")
    _one_of("weight", weight, "workers", "examples")
    _one_of("unused", unused, "zero", "skip")
    if sync_every < 1:
        raise errors.InvalidCall(f"sync_every={sync_every}: 1 or more is allowed")
    if sync_every > 1 and apply != "local":
        raise errors.InvalidCall(
            f'sync_every={sync_every} is for apply="local": with "{apply}" each step is exchanged'
        )
    if accumulate < 1:
        raise errors.InvalidCall(f"accumulate={accumulate}: 1 or more is allowed")
    if clip_norm is not None and not clip_norm > 0:
        raise errors.InvalidCall(f"clip_norm={clip_norm}: more than 0 is allowed")
    if unused == "skip" and apply == "worker":
        raise errors.Unsupported(
            'unused="skip" is for apply="server" and "local": with "worker" all count, as "zero"'
        )
    return Options(apply, push, accumulate, weight, clip_norm, unused, sync_every, overlap)


def _one_of(name: str, value: str, *allowed: str) -> None:
    if value not in allowed:
        listed = ", ".join(f'"{one}"' for one in allowed)
        raise errors.InvalidCall(f'{name}="{value}": {listed} allowed')


class _Distributed:
    """Goes before the optimizer's own class, and has its methods then."""

    _rubato: Training
    # torch.cuda.amp.GradScaler then calls step() after an overflow too: others wait for this worker's part.
    _step_supports_amp_scaling = True

    def step(self, closure: Optional[Callable[[], Any]] = None, **amp: Any) -> Any:
        """Pushes what backward has not, and returns with the next step's weights in the parameters. apply="local": the
        optimizer steps here, and every `sync_every` calls what the weights moved is pushed.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if isinstance(self._rubato, LocalTraining):
            self._local_step(self._rubato, amp)
        elif self._rubato.by_worker:
            self._worker_step(amp)
        else:
            self._server_step(amp)
        self._count_step()
        return loss

    # Schedulers look whether `step` counts its calls; this one does. In torch 2 by the second name.
    step._with_counter = True  # type: ignore[attr-defined]
    step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    # Torch would wrap it once more.
    step.hooked = True  # type: ignore[attr-defined]

    def zero_grad(self, *arguments: Any, **options: Any) -> None:
        """As torch does, and the gradients of rows of an EmbeddingBag that were not pushed."""
        self._rubato.tables.drop_gradients()
        super().zero_grad(*arguments, **options)  # type: ignore[misc]

    def synchronize(self) -> None:
        """apply="worker": waits for the mean gradients, to clip or unscale them before `step()`. "local": exchanges weights
        now, after fewer steps than `sync_every`: before an evaluation, say. "server" with overlap="forward" or "layer": waits
        for the weights that the next forward would wait for, before parameters are used in another way.
        """
        if not self._rubato.on_servers:
            self._rubato.exchange()
            return
        if not self._rubato.overlaps or self._rubato.has_gradients:
            raise errors.InvalidCall(
                'synchronize() after backward() is for apply="worker" and "local"; with "server" give clip_norm='
            )
        self._rubato.settle()

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """backward() in this block adds to gradients and pushes none."""
        self._rubato.no_sync_depth += 1
        try:
            yield
        finally:
            self._rubato.no_sync_depth -= 1

    def skip(self) -> None:
        """Instead of `step()`: this worker contributes nothing (more) to this step. Not with apply="worker"; with "local" a
        call counts as one of `sync_every`, and the optimizer does not step.
        """
        if self._rubato.by_worker:
            raise errors.Unsupported(
                'skip() is for apply="server" and "local": with "worker" every rank steps alike'
            )
        self._rubato.skip_step()

    def set_examples(self, examples: int) -> None:
        """weight="examples": the size of a batch, before its backward()."""
        self._rubato.set_examples(examples)

    def add_param_group(self, param_group: Any) -> None:
        """Refused: the servers have the tensors that the optimizer was wrapped with."""
        raise errors.Unsupported("add_param_group: add all groups before DistributedOptimizer")

    def state_dict(self) -> Any:
        """In torch's layout, for an optimizer of this class that nobody wrapped, too. apply="server": fetched from the
        servers, between step() and the next backward(); any rank may call it. "worker" and "local": this worker's own.
        """
        if not self._rubato.on_servers:
            return super().state_dict()  # type: ignore[misc]
        own = self.state
        self.state: Any = collections.defaultdict(dict, own)
        self.state.update(self._fetched_state())
        try:
            return super().state_dict()  # type: ignore[misc]
        finally:
            self.state = own

    def load_state_dict(self, state_dict: Any) -> Any:
        """apply="worker" and "local": as torch does. With "server" before DistributedOptimizer, which gives the state to
        the servers.
        """
        if self._rubato.on_servers:
            raise errors.InvalidCall(
                "load_state_dict after DistributedOptimizer: the servers have the weights and the optimizer's state by "
                "now. Load both the model and the optimizer before it: those of rank 0 count"
            )
        return super().load_state_dict(state_dict)  # type: ignore[misc]

    def _fetched_state(self) -> dict[torch.Tensor, dict[str, Any]]:
        training = self._rubato
        if training.session._paused:
            raise errors.InvalidCall("state_dict() within `pause`")
        training.settle()
        if training.has_pushed:
            raise errors.InvalidCall(
                "state_dict() between backward() and step(): gradients are in flight; call it after step()"
            )
        layout = layout_of(self, training._rule.algorithm)  # type: ignore[arg-type]
        return fetch_state(layout, training.parameters, training._client)

    def _count_step(self) -> None:
        """What schedulers of torch 1 and 2 look at, to warn if they step first."""
        if hasattr(self, "_step_count"):
            self._step_count += 1
        self._opt_called = True

    def _server_step(self, amp: dict[str, Any]) -> None:
        if self._has_scaler(amp) and self._rubato.has_pushed:
            raise errors.InvalidCall(
                'a GradScaler needs push="step": gradients are pushed when they are unscaled'
            )
        scale, overflow = self._scaling(amp)
        if overflow:
            self._rubato.skip_step()
        else:
            self._rubato.finish_step(scale)

    def _worker_step(self, amp: dict[str, Any]) -> None:
        if self._has_scaler(amp) and not self._rubato.is_exchanged:
            raise errors.InvalidCall(
                'a GradScaler with apply="worker": call optimizer.synchronize() before scaler.step(optimizer), so '
                "that all ranks find the same overflow"
            )
        if not self._rubato.is_exchanged:
            self._rubato.exchange()
        if self._rubato.ended is not None:
            return
        scale, overflow = self._scaling(amp)
        if not overflow:
            if scale is not None:
                _unscale(self.param_groups, scale)  # type: ignore[attr-defined]
            self._own_step()
        self._rubato.worker_stepped()

    def _local_step(self, training: LocalTraining, amp: dict[str, Any]) -> None:
        scale, overflow = self._scaling(amp)
        if overflow:
            training.skip_step()
            return
        if scale is not None:
            _unscale(self.param_groups, scale)  # type: ignore[attr-defined]
        training.before_step()
        self._own_step()
        training.stepped()

    def _own_step(self) -> None:
        """The optimizer's, on gradients that are unscaled. Torch 2's refuse to step while they have a scaler's tensors,
        unless they unscale by themselves.
        """
        names = ("grad_scale", "found_inf")
        of_scaler = {name: self.__dict__.pop(name) for name in names if name in self.__dict__}
        try:
            super().step()  # type: ignore[misc]
        finally:
            self.__dict__.update(of_scaler)

    def _has_scaler(self, amp: dict[str, Any]) -> bool:
        return "grad_scaler" in amp or getattr(self, "found_inf", None) is not None

    def _scaling(self, amp: dict[str, Any]) -> tuple[Optional[float], bool]:
        """What a GradScaler says: by what gradients are to be divided, and whether there was an overflow.

        Torch 1.13.0 gives itself as an argument, later ones leave two tensors in the optimizer.
        """
        scaler = amp.get("grad_scaler")
        if scaler is not None:
            try:
                scaler.unscale_(self)
            except RuntimeError as error:
                if "already been called" not in str(error):
                    raise
            return None, not _all_finite(self.param_groups)  # type: ignore[attr-defined]
        found = getattr(self, "found_inf", None)
        scale = getattr(self, "grad_scale", None)
        return (
            None if scale is None else float(scale),
            found is not None and bool(float(found)),
        )


def _gradients(groups: Any) -> Iterator[torch.Tensor]:
    for group in groups:
        for parameter in group["params"]:
            if parameter.grad is not None:
                yield parameter.grad


def _unscale(groups: Any, scale: float) -> None:
    with torch.no_grad():
        for gradient in _gradients(groups):
            gradient.div_(scale)


def _all_finite(groups: Any) -> bool:
    return all(bool(torch.isfinite(gradient).all()) for gradient in _gradients(groups))
