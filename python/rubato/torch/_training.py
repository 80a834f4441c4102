"""What a wrapped optimizer does: push gradients as they come, begin the next step, take its weights.

A step goes through three states. OPEN: it has begun, and gradients may be pushed. EXCHANGED (apply="worker"): the mean
gradients are there, and the optimizer has not stepped. After that the next one is OPEN; with overlap="forward" and "layer"
it is AWAITED before: its weights come, and whoever needs them waits.
"""

from __future__ import annotations

import threading
from typing import Any, Optional, Sequence

import torch
from torch.nn.utils.clip_grad import clip_grad_norm_

from rubato import errors
from rubato._library import Moved, Step
from rubato.session import Session
from rubato.torch._hooks import GradientHooks
from rubato.torch._rules import Rule
from rubato.torch._step import Options, Slice, StepState
from rubato.torch._tables import Tables
from rubato.torch._tensors import Parameters

PUSH_INSTEAD = 'use push="step", which pushes in step()'


class Training:
    """One model in a session. Belongs to the thread that trains."""

    def __init__(
        self,
        session: Session,
        optimizer: torch.optim.Optimizer,
        parameters: Parameters,
        tables: Tables,
        rule: Rule,
        options: Options,
    ) -> None:
        self.session = session
        self._client = session._client
        self._groups: list[Any] = optimizer.param_groups
        self.parameters = parameters
        self.tables = tables
        self._rule = rule
        self._options = options
        self.no_sync_depth = 0
        # Of a step that is awaited: which parameters have its weights. None: it has begun.
        self._taken: Optional[list[bool]] = None
        self._sent_values: list[Optional[dict[str, float]]] = [None] * len(self._groups)
        self.ended: Optional[errors.JobEnded] = None
        session._claim("DistributedOptimizer", self)
        # Otherwise weights are others than the parameters, come for one module after the other, or go on to a GPU.
        keep_weights = self.on_servers and not self.overlaps and not parameters.any_on_gpu()
        session._define(
            parameters.specs,
            [rule.values(group) for group in self._groups],
            rule.algorithm,
            rule.initial_accumulator,
            tables.specs,
            keep_weights,
        )
        parameters.share(self._client, keep_weights)
        session._before_leaving(parameters.release)
        session._start()
        tables.bind(self, self._client)
        self.steps_done = -1
        # How often the optimizer's step() or skip() was called.
        self.optimizer_steps = 0
        self.step_begun = session._begin()
        self._check_first_step()
        parameters.take_weights()
        self._one_gradient = threading.Lock()
        self._hooks = GradientHooks(parameters.tensors, self._on_gradient)

    @property
    def by_worker(self) -> bool:
        """Whether the optimizer itself steps on mean gradients."""
        return self._options.apply == "worker"

    @property
    def on_servers(self) -> bool:
        """Whether the servers do what the optimizer would, and have its state."""
        return self._options.apply == "server"

    @property
    def rollbacks(self) -> int:
        """How often the job has gone back to a checkpoint."""
        return self.step_begun.rollbacks

    # Of Session's Member.

    def why_not_pause(self) -> Optional[str]:
        """See Member."""
        if self.by_worker:
            return ""
        self.settle()
        if self.has_gradients:
            return (
                "gradients of this step were computed already: pause between step() and backward()"
            )
        return None

    def pausing(self) -> None:
        """See Member."""
        self.parameters.stand_aside()

    def resumed(self, step: Step) -> None:
        """See Member. A batch of leased data that was taken before is one of this step."""
        part = self._state.slice if step.rollbacks == self.rollbacks else None
        self._new_step(step)
        self._state.slice = part
        self.parameters.take_weights()

    def closing(self) -> None:
        """See Member: a step that was begun and not pushed is none, but its weights are the last ones."""
        if self.ended is None and not self.session._paused:
            self.settle()

    # Called while gradients are computed.

    def set_examples(self, examples: int) -> None:
        """That many more examples in this step."""
        if self._options.weight != "examples":
            raise errors.InvalidCall('set_examples: the optimizer was made with weight="workers"')
        if examples < 1:
            raise errors.InvalidCall(f"set_examples({examples}): 1 or more is allowed")
        if self._state.has_pushed:
            raise errors.InvalidCall(
                "set_examples: to be called before backward() pushes the first gradient"
            )
        self._state.examples += examples

    def check_leases(self) -> None:
        """Raises Unsupported unless this model can be trained on leased data."""
        if self.by_worker:
            raise errors.Unsupported(
                'LeasedSampler with apply="worker": a rank without a lease would step with the others all the same, by '
                "the learning rate that its own loop has come to, and weights would differ between ranks: use "
                'apply="server" or "local"'
            )
        if self._options.overlap == "layer":
            raise errors.Unsupported(
                'LeasedSampler with overlap="layer" is not there: a step may be dropped, and its examples with it; use '
                'overlap="forward"'
            )
        # A rollback that is found in the middle of a step would leave its batches and the next lease's in one.
        if self.overlaps and self._options.accumulate > 1:
            raise errors.Unsupported(
                'LeasedSampler with accumulate above 1 and overlap="forward" is not there: use overlap="step"'
            )

    @property
    def accumulate(self) -> int:
        """How many backward() there are to a step."""
        return self._options.accumulate

    def end_lease(self) -> None:
        """All of a lease has been stepped on. A step of the job has examples of one shard alone."""

    def skip_without_data(self) -> None:
        """Lets a step of the job pass that this worker has no lease for."""
        self.skip_step()

    def set_slice(self, part: Slice, epoch: float) -> None:
        """The leased examples of this step, and its position in epochs."""
        self._state.slice = part
        self._client.set_epoch(epoch)

    def _on_gradient(self, index: int) -> None:
        # Autograd has a thread for each GPU.
        with self._one_gradient:
            self._push_computed(index)

    def _push_computed(self, index: int) -> None:
        self._check_arrived(index)
        if self.no_sync_depth > 0 or self._state.dropped:
            return
        self._raise_unless_open()
        name = self.parameters.names[index]
        if self._state.exchanged:
            raise errors.GradientChanged(
                f"backward() after synchronize(), before step(): gradient of {name}"
            )
        if self._state.pushed[index] is not None:
            raise errors.GradientChanged(
                f"the gradient of {name} was computed again after it had been pushed: call step() after each "
                f"{self._options.accumulate} backward(), give accumulate=, or {PUSH_INSTEAD}"
            )
        self._state.fired[index] += 1
        deferred = self._options.push == "step" or self._clips_before_push
        # A node may be run with no gradient; step() looks after the parameter then.
        if deferred or self.parameters.tensors[index].grad is None:
            return
        if self._state.fired[index] >= self._options.accumulate:
            self._push(index)

    # overlap="forward" and "layer".

    def on_use(self, indices: Optional[Sequence[int]]) -> None:
        """A module is about to use these parameters; None: somebody reads any of them."""
        if self._taken is None:
            return
        if indices is None or self._options.overlap == "forward" or not torch.is_grad_enabled():
            self.settle()
            return
        for index in indices:
            if self._taken is not None and not self._taken[index]:
                self._take(index)

    def settle(self) -> None:
        """Begins the step that is awaited, if one is: all parameters have its weights then."""
        taken = self._taken
        if taken is None:
            return
        void = False
        try:
            step = self._begin()
        except Moved:
            void = True
            step = self._begin()
        self._taken = None
        if step is None:
            self._state.dropped = True
            return
        # What was leased before a rollback is leased anew.
        leased_anew = self._state.slice is not None and step.rollbacks != self.rollbacks
        self._state.dropped = void or leased_anew
        self.step_begun = step
        # If it is void, those that were taken wait for the next step: backward() needs them as they are.
        for index, there in enumerate(taken):
            if not there:
                self.parameters.take(index)

    def _take(self, index: int) -> None:
        assert self._taken is not None
        try:
            self._client.await_weights(index)
        except errors.JobEnded as ended:
            self.ended = ended
            self._taken = None
            self._state.dropped = True
            return
        self.parameters.take(index)
        self._taken[index] = True

    def _check_arrived(self, index: int) -> None:
        """Of a gradient: whether it was computed with weights of this step."""
        if self._taken is None or self.session._paused:
            return
        if not self._taken[index]:
            raise errors.InvalidCall(
                f"the gradient of {self.parameters.names[index]} was computed before the weights of its step had come: "
                f'overlap="{self._options.overlap}" waits for them where model(...) or one of its modules is called. '
                "Before parameters are used in another way, call optimizer.synchronize()"
            )
        self.settle()

    def _drop(self) -> bool:
        """Whether nothing of this step is of use. Goes on to the next one then."""
        if not self._state.dropped:
            return False
        if self.ended is None:
            self.parameters.wait_until_taken()
            self._client.skip()
            self._next_step()
        else:
            self._new_step(self.step_begun)
        return True

    @property
    def has_gradients(self) -> bool:
        """Whether backward has computed some in this step."""
        return self._state.has_pushed or any(self._state.fired) or self.tables.have_gradients

    @property
    def overlaps(self) -> bool:
        """Whether weights may come after step() has returned."""
        return self._options.overlap != "step"

    @property
    def _clips_before_push(self) -> bool:
        return self._options.clip_norm is not None and not self.by_worker

    # Steps.

    def finish_step(self, scale: Optional[float] = None) -> None:
        """apply="server": all gradients are there. `scale`: what they are to be divided by."""
        self.settle()
        if self._drop():
            return
        self._flush(scale)
        self.optimizer_steps += 1
        self._next_step()

    def exchange(self) -> None:
        """apply="worker": all gradients are there; returns with their means in their places."""
        if self._state.exchanged:
            raise errors.InvalidCall("synchronize() was called twice in one step")
        self._flush(None)
        before = self.rollbacks
        step = self._begin()
        if step is None:
            return
        if step.rollbacks != before:
            raise errors.JobFailed(
                'the job went back to a checkpoint. With apply="worker" the weights are the workers\' own: start the '
                "job again from what they have saved"
            )
        self.step_begun = step
        self.parameters.take_gradients()
        if self._options.clip_norm is not None:
            clip_grad_norm_(self.parameters.tensors, self._options.clip_norm)
        self._state.exchanged = True

    def worker_stepped(self) -> None:
        """apply="worker": the optimizer has stepped on the means."""
        self._new_step(self.step_begun)

    @property
    def is_exchanged(self) -> bool:
        """apply="worker": whether the means are there."""
        return self._state.exchanged

    @property
    def has_pushed(self) -> bool:
        """Whether a gradient of this step is in flight."""
        return self._state.has_pushed

    def skip_step(self) -> None:
        """apply="server": contributes nothing more to this step, and begins the next one."""
        self._raise_unless_open()
        self.settle()
        if self._drop():
            return
        if not self.has_pushed:
            self._before_first_push()
        self._push_arrived(wait=True)
        self.tables.ask()
        self._client.skip()
        self.optimizer_steps += 1
        self._next_step()

    def _next_step(self) -> None:
        if self.overlaps:
            self._new_step(self.step_begun)
            self._taken = [False] * len(self.parameters)
            return
        step = self._begin()
        if step is not None:
            self._new_step(step)
            self.parameters.take_weights()

    def _begin(self) -> Optional[Step]:
        """None: the job has ended, which the next gradient or step raises."""
        try:
            step = self.session._begin()
        except errors.JobEnded as ended:
            self.ended = ended
            return None
        if self.by_worker and step.mode != "sync":
            raise errors.JobFailed(f'the job\'s mode is {step.mode}, and apply="worker" needs sync')
        return step

    def _raise_unless_open(self) -> None:
        if self.session._paused:
            raise errors.InvalidCall("a gradient or a step within `pause`")
        if self.ended is not None and not self._state.dropped:
            raise self.ended

    def _check_first_step(self) -> None:
        if self.by_worker and self.step_begun.step > 0:
            raise errors.Refused(
                f'the job is at step {self.step_begun.step}, and with apply="worker" its servers have no weights for '
                'a worker that comes later: start all workers anew, or use apply="server"'
            )
        self._new_step(self.step_begun)

    def _new_step(self, step: Step) -> None:
        self.step_begun = step
        self.steps_done += 1
        self._state = StepState(len(self.parameters))
        self.tables.new_step()

    # Pushes.

    def _flush(self, scale: Optional[float]) -> None:
        """Pushes what backward has not, and checks what it has."""
        self._raise_unless_open()
        for index in range(len(self.parameters)):
            self._check_unchanged(index)
        self._check_values()
        factor = self._clip_factor(scale) if self._clips_before_push else 1.0
        if scale is not None:
            factor /= scale
        if not self.has_pushed:
            self._before_first_push()
        for index in range(len(self.parameters)):
            if self._state.pushed[index] is None:
                self._push_late(index, factor)
        self._push_arrived(wait=True)
        if len(self.tables) > 0:
            self.tables.push(self._weight(), scale)

    def _push_late(self, index: int, factor: float) -> None:
        if self.parameters.tensors[index].grad is not None:
            self._push(index, factor)
            if self._state.fired[index] == 0 and self.no_sync_depth == 0:
                self._hooks.refresh(index)
        elif self._options.unused == "skip":
            self._client.push_absent(index)
        else:
            self.parameters.gradients[index].zero_()
            self._client.push(index, self._weight())

    def _push(self, index: int, factor: float = 1.0) -> None:
        gradient = self.parameters.tensors[index].grad
        assert gradient is not None
        if gradient.is_sparse:
            raise errors.Unsupported(
                f"the gradient of {self.parameters.names[index]} is sparse: dense ones are allowed (sparse=False)"
            )
        weight = self._weight()
        if not self.has_pushed:
            self._before_first_push()
        is_there = self.parameters.give_gradient(index, factor)
        self._state.pushed[index] = (gradient, gradient._version)
        self._state.has_pushed = True
        if is_there:
            self._client.push(index, weight)
        else:
            self._push_arrived(wait=False)

    def _push_arrived(self, wait: bool) -> None:
        """Pushes gradients that have come from a GPU meanwhile; with `wait` all that were given."""
        for index in self.parameters.arrived(wait):
            self._client.push(index, self._weight())

    def _before_first_push(self) -> None:
        changed = self.parameters.changed() if self.on_servers else None
        if changed is not None:
            raise errors.InvalidCall(
                f"{changed} was changed after DistributedOptimizer, by something else than step(): with "
                'apply="server" the servers have the weights, and would not know of it. Load weights before '
                'DistributedOptimizer, those of rank 0 count; to change them as you train, use apply="worker"'
            )
        self.parameters.wait_until_taken()
        for number, group in enumerate(self._groups):
            values = self._rule.values(group)
            if values != self._sent_values[number]:
                self._client.set_hyperparameters(number, values)
                self._sent_values[number] = values
        if self._state.slice is not None and not self._state.told_slice:
            self._client.set_slice(
                self._state.slice.shard, self._state.slice.begin, self._state.slice.end
            )
            self._state.told_slice = True

    def _weight(self) -> int:
        if self._options.weight == "workers":
            return 1
        if self._state.examples == 0 and self._state.slice is not None:
            return self._state.slice.end - self._state.slice.begin
        if self._state.examples == 0:
            raise errors.InvalidCall(
                'weight="examples": call set_examples(n) with the batch\'s size before backward()'
            )
        return self._state.examples

    def _check_unchanged(self, index: int) -> None:
        pushed = self._state.pushed[index]
        if pushed is None:
            return
        gradient = self.parameters.tensors[index].grad
        if gradient is pushed[0] and gradient._version == pushed[1]:
            return
        how = "set to None or replaced" if gradient is not pushed[0] else "changed"
        raise errors.GradientChanged(
            f"the gradient of {self.parameters.names[index]} was {how} after it had been pushed: to clip, give "
            f'clip_norm= or use apply="worker" with synchronize(); otherwise {PUSH_INSTEAD}'
        )

    def _check_values(self) -> None:
        if not self.has_pushed:
            return
        for number, group in enumerate(self._groups):
            values = self._rule.values(group)
            sent = self._sent_values[number]
            if values != sent:
                raise errors.GradientChanged(
                    f"group {number} has changed from {sent} to {values} after gradients had been pushed: change "
                    f"it before backward(), or {PUSH_INSTEAD}"
                )

    def _clip_factor(self, scale: Optional[float]) -> float:
        """Of this worker's gradient, which is clipped before it is averaged."""
        assert self._options.clip_norm is not None
        norm = self.parameters.gradient_norm() / (scale or 1.0)
        return min(1.0, self._options.clip_norm / (norm + 1e-6))
