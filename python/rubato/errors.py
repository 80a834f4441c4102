"""What goes wrong in a job, as exceptions."""

from __future__ import annotations


class RubatoError(Exception):
    """The base of what this package raises on its own account."""


class InvalidCall(RubatoError):
    """An argument is out of range, or a call came at the wrong time. Nothing has changed."""


class Unsupported(InvalidCall):
    """An option that is not there. The text says what to use instead."""


class Refused(RubatoError):
    """Models differ between workers, or the coordinator does not take this one."""


class Unavailable(RubatoError):
    """A coordinator, a server or a program cannot be reached or found."""


class Timeout(Unavailable, TimeoutError):
    """A wait has taken longer than its caller allows. The text says what it was for."""


class JobFailed(RubatoError):
    """The job has failed, or this worker was evicted."""


class Forked(RubatoError):
    """A child process has used the session of its parent."""


class NotFound(RubatoError):
    """A key that nobody has put, or another name that is not known."""


class GradientChanged(RubatoError):
    """A gradient was written again, or computed twice, after it had been pushed."""


class JobEnded(Exception):
    """The job is over, or was stopped, and needs nothing more of this worker.

    Not an error: leaving a ``with rubato.init():`` block by it ends the block quietly.
    """
