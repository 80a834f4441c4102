"""How a session ends when its process does: exceptions that nobody caught, SIGTERM, and the end of the program."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import traceback
from types import FrameType, TracebackType
from typing import Any, Optional

from rubato import errors

# What a shell gives for a program that SIGTERM ended.
TERMINATED = 128 + signal.SIGTERM

_watched: Any = None
_process = 0
_installed = False
_hook_before: Any = None


def watch(session: Any) -> None:
    """Closes the session at the end of the process, unless that was done. SIGTERM leaves after the current step."""
    global _watched, _process, _installed, _hook_before
    _watched, _process = session, os.getpid()
    if not _installed:
        _installed = True
        _hook_before = sys.excepthook
        sys.excepthook = _uncaught
        atexit.register(_at_exit)
    if threading.current_thread() is threading.main_thread():
        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _on_terminate)


def unwatch() -> None:
    """The session is closed."""
    global _watched
    _watched = None


def reason(error: Optional[BaseException]) -> Optional[str]:
    """What the others are told when a worker leaves by this exception. None: that it has done its part."""
    if error is None or isinstance(error, errors.JobEnded):
        return None
    if isinstance(error, SystemExit):
        done = error.code in (None, 0, TERMINATED)
        return None if done else f"the program has exited with {error.code}"
    return "".join(traceback.format_exception_only(type(error), error)).strip()


def _mine() -> Any:
    return _watched if os.getpid() == _process else None


def _uncaught(
    kind: type[BaseException], error: BaseException, trace: Optional[TracebackType]
) -> None:
    session = _mine()
    if session is not None and isinstance(error, errors.JobEnded):
        print(f"rubato: the job has ended: {error}", file=sys.stderr)
        sys.exit(0)
    _hook_before(kind, error, trace)
    if session is not None:
        try:
            session.close(reason(error))
        except errors.RubatoError as failure:
            print(f"rubato: {failure}", file=sys.stderr)


def _at_exit() -> None:
    session = _mine()
    if session is not None:
        try:
            session.close()
        except errors.RubatoError as failure:
            print(f"rubato: {failure}", file=sys.stderr)


def _on_terminate(number: int, frame: Optional[FrameType]) -> None:
    # A second one ends the process at once.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    session = _mine()
    if session is None or session._step is None:
        os.kill(os.getpid(), signal.SIGTERM)
        return
    session._request_leave()
