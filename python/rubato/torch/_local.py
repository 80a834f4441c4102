"""apply="local": the optimizer steps on the worker after each batch, and weights meet every k steps (Stich 2019).

A round is k local steps, and one step of the job. Its end pushes by how much each parameter has moved, where it was minus
where it is, as the gradient; servers subtract the mean of what workers push, and the next round goes on from what comes
back. Where it was is what the shared memory holds until the round's first push.
"""

from __future__ import annotations

from typing import Optional

from torch.nn.utils.clip_grad import clip_grad_norm_

from rubato import errors
from rubato._library import Step
from rubato.torch._step import Slice, StepState
from rubato.torch._training import Training


class Round:
    """What this worker has done since the last exchange."""

    def __init__(self, parameters: int) -> None:
        # step() and skip().
        self.batches = 0
        # Those that the optimizer has stepped on.
        self.steps = 0
        self.examples = 0
        # Of each parameter whether a step had a gradient.
        self.used = [False] * parameters
        # Leased examples: of one shard, as a round ends with its lease.
        self.slice: Optional[Slice] = None

    def add(self, part: Optional[Slice]) -> None:
        """The batch had these leased examples, which follow those before."""
        if part is not None:
            begin = part.begin if self.slice is None else self.slice.begin
            self.slice = Slice(part.shard, begin, part.end)


class LocalTraining(Training):
    """One model in a session, with an optimizer that steps on the worker. Belongs to the thread that trains."""

    # Of Session's Member.

    def why_not_pause(self) -> Optional[str]:
        """See Member."""
        if self._round.batches > 0:
            return (
                f"{self._round.batches} local steps were not pushed, and would be lost: call synchronize() of the "
                "optimizer before"
            )
        return super().why_not_pause()

    def closing(self) -> None:
        """See Member: pushes a round that is shorter than the others, and takes the weights that come back."""
        if self._round.batches == 0 or self.ended is not None or self.session._paused:
            return
        try:
            self.end_round()
        except errors.JobEnded as ended:
            self.ended = ended

    # Called while gradients are computed: all stay here, as torch adds them up.

    def end_lease(self) -> None:
        """See Training: the round ends with the shard."""
        if self.ended is None:
            self.end_round()

    def skip_without_data(self) -> None:
        """See Training: a round of nothing."""
        self._raise_unless_open()
        self._round.batches += 1
        self.end_round()

    def _on_gradient(self, index: int) -> None:
        self._raise_unless_open()
        self._state.fired[index] += 1

    # Steps.

    def before_step(self) -> None:
        """The gradients of a batch are there, and the optimizer is about to step on them."""
        self._raise_unless_open()
        examples = self._weight()
        if self._options.clip_norm is not None:
            clip_grad_norm_(self.parameters.tensors, self._options.clip_norm)
        self._round.examples += examples

    def stepped(self) -> None:
        """The optimizer has stepped."""
        for index, parameter in enumerate(self.parameters.tensors):
            if parameter.grad is not None:
                self._round.used[index] = True
        self._round.steps += 1
        self._count_batch()

    def skip_step(self) -> None:
        """A batch without a step of the optimizer: the round is as long as others' all the same."""
        self._raise_unless_open()
        self._count_batch()

    def exchange(self) -> None:
        """Ends the round here, between two batches."""
        if any(self._state.fired):
            raise errors.InvalidCall(
                'synchronize() between backward() and step(): with apply="local" it exchanges weights, which the '
                "gradients are not of: call it after step(). Gradients may be clipped without it"
            )
        self.end_round()

    def end_round(self) -> None:
        """Pushes what the round has so far, and goes on from the weights that come back. Nothing of an empty round."""
        self._raise_unless_open()
        if self._round.batches == 0:
            return
        self._state.slice = self._round.slice
        self._before_first_push()
        if self._round.steps == 0:
            self._client.skip()
        else:
            self._push_movement()
        self._next_step()

    def _count_batch(self) -> None:
        self._round.add(self._state.slice)
        # Of the next batch.
        self._state = StepState(len(self.parameters))
        self._round.batches += 1
        self.optimizer_steps += 1
        if self._round.batches >= self._options.sync_every:
            self.end_round()

    def _new_step(self, step: Step) -> None:
        super()._new_step(step)
        self._round = Round(len(self.parameters))

    def _push_movement(self) -> None:
        # All before the first push, after which the weights that the round began with may go.
        self.parameters.give_movement()
        # Workers alike, however many steps each has made.
        weight = 1 if self._options.weight == "workers" else self._round.examples
        for index, used in enumerate(self._round.used):
            if used or self._options.unused == "zero":
                self._client.push(index, weight)
            else:
                self._client.push_absent(index)
