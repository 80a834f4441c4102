"""Calls of all ranks that succeed on all of them or fail on all of them, and a checkpoint that they wait for together."""

from __future__ import annotations

import dataclasses
import json
import time
from typing import TYPE_CHECKING, Any, Callable, Optional

from rubato import errors
from rubato._library import Step
from rubato._own_state import OwnState

if TYPE_CHECKING:
    from rubato.session import Session

# How long a step without examples lasts at least while the checkpoint is being written, and at most.
_PACE_SECONDS = 0.02
_PACE_SECONDS_MAX = 0.5
# Ranks that are late tell each other so.
_LAST_WORD_SECONDS = 10.0


@dataclasses.dataclass
class Together:
    """One call of `save` or `load`, which all ranks make."""

    session: "Session"
    own: OwnState
    what: str
    deadline: float
    # The last step that has passed before all ranks were there.
    _passed: Optional[Step] = None

    def left(self) -> float:
        """Seconds that the call may still take."""
        return max(0.0, self.deadline - time.monotonic())

    @property
    def is_late(self) -> bool:
        """Whether there are none."""
        return self.left() == 0

    # Agreement.

    def meet(self, work: Callable[[], dict[str, Any]]) -> list[dict[str, Any]]:
        """As `attempt`, for the first word: a rank that is early lets the steps of the others pass."""
        try:
            return self.attempt(work, self._pass_steps)
        except Exception:
            if self._passed is not None:
                self.own.resumed(self._passed)
            raise

    def _pass_steps(self) -> None:
        # With apply="worker" each step takes all ranks.
        if not self.own.keeps_weights:
            self._passed = self._step_on()

    def agree(
        self, part: dict[str, Any], meanwhile: Optional[Callable[[], None]] = None
    ) -> list[dict[str, Any]]:
        """What each rank says. Raises on all ranks if one has a "problem"."""
        kind = self.what.split("(", maxsplit=1)[0]
        timeout = max(self.left(), _LAST_WORD_SECONDS)
        parts = self.session._values.gather(kind, part, timeout, meanwhile)
        for rank, other in enumerate(parts):
            if other.get("problem"):
                where = "" if self.session.size == 1 else f"rank {rank}: "
                raise _exception(other["kind"])(f"{self.what}: {where}{other['problem']}")
        return parts

    def attempt(
        self, work: Callable[[], dict[str, Any]], meanwhile: Optional[Callable[[], None]] = None
    ) -> list[dict[str, Any]]:
        """Work that each rank does by itself: all succeed, or all raise."""
        cause: Optional[Exception] = None
        try:
            part = work()
        except Exception as error:  # Of pickle, say: whatever it is, the others must not wait.
            cause = error
            part = {"problem": f"{error}", "kind": type(error).__name__}
            if isinstance(error, OSError):
                part["kind"] = "Unavailable"
            elif not isinstance(error, errors.RubatoError):
                part = {"problem": f"{type(error).__name__}: {error}", "kind": "InvalidCall"}
        try:
            return self.agree(part, None if cause is not None else meanwhile)
        except Exception as said:
            raise said from cause

    # The checkpoint of the job.

    def await_checkpoint(self) -> str:
        """Its directory. All ranks go on with steps without examples until it is complete, and end in the same one."""
        key = f"rubato/saved/{self.session._values.count}"
        step = self._step_on()
        if self.session.rank == 0:
            step, answer = self._have_written(step, key)
        else:
            step, answer = self._hear_of_it(step, key)
        # In sync nobody is further than that, and all have to be as far.
        while step.mode == "sync" and step.step < answer["step"]:
            step = self._step_on()
        self.own.resumed(step)
        self.agree({})
        if self.session.rank == 0 and self.session.size > 1:
            self.session._client.erase(key)
        if answer["problem"]:
            raise errors.Unavailable(f"{self.what}: {answer['problem']}")
        return str(answer["directory"])

    def _have_written(self, step: Step, key: str) -> tuple[Step, dict[str, Any]]:
        """Rank 0: waits for it, and tells the others in which step that was."""
        directory: Optional[str] = None
        problem, pace = "", _PACE_SECONDS
        while directory is None and not problem:
            try:
                directory = self.session._client.await_checkpoint(pace)
            except errors.RubatoError as error:
                problem = str(error)
            if directory is None and self.is_late:
                problem = problem or "the job's checkpoint is not complete in time"
            step, pace = self._step_on(), min(2 * pace, _PACE_SECONDS_MAX)
        answer = {"step": step.step, "directory": directory, "problem": problem}
        if self.session.size > 1:
            self.session._client.put(key, json.dumps(answer).encode())
        return step, answer

    def _hear_of_it(self, step: Step, key: str) -> tuple[Step, dict[str, Any]]:
        pace = _PACE_SECONDS
        while True:
            try:
                return step, json.loads(self.session._client.get(key, pace))
            except errors.Timeout:
                if time.monotonic() > self.deadline + _LAST_WORD_SECONDS:
                    raise errors.Timeout(
                        f"{self.what}: rank 0 does not say that it is written"
                    ) from None
            step, pace = self._step_on(), min(2 * pace, _PACE_SECONDS_MAX)

    def _step_on(self) -> Step:
        self.session._client.skip()
        return self.session._begin(max(self.left(), _LAST_WORD_SECONDS))


def _exception(kind: str) -> type[Exception]:
    found = getattr(errors, kind, None)
    if isinstance(found, type) and issubclass(found, errors.RubatoError):
        return found
    return errors.RubatoError
