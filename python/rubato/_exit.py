"""How a session ends when its process does: exceptions that nobody caught, and the end of the program."""

from __future__ import annotations

import atexit
import os
import sys
import traceback
from types import TracebackType
from typing import Any, Optional

from rubato import errors

_watched: Any = None
_process = 0
_installed = False
_hook_before: Any = None


def watch(session: Any) -> None:
    """Closes the session at the end of the process, unless that was done."""
    global _watched, _process, _installed, _hook_before
    _watched, _process = session, os.getpid()
    if not _installed:
        _installed = True
        _hook_before = sys.excepthook
        sys.excepthook = _uncaught
        atexit.register(_at_exit)


def unwatch() -> None:
    """The session is closed."""
    global _watched
    _watched = None


def reason(error: Optional[BaseException]) -> Optional[str]:
    """What the others are told when a worker leaves by this exception. None: that it has done its part."""
    if error is None or isinstance(error, errors.JobEnded):
        return None
    if isinstance(error, SystemExit):
        return None if error.code in (None, 0) else f"the program has exited with {error.code}"
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
