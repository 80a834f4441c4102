"""Rubato: train any model on parameter servers, in SYNC, SSP or ASYNC, and change the mode while it trains.

    import rubato
    import rubato.torch

    with rubato.init() as session:
        optimizer = rubato.torch.DistributedOptimizer(optimizer, model)
        ...  # Train as before.

`rubato.torch` is for PyTorch, `rubato.client` for whoever has gradients as NumPy arrays.
"""

from rubato._version import __version__
from rubato.errors import (
    Forked,
    GradientChanged,
    InvalidCall,
    JobEnded,
    JobFailed,
    NotFound,
    Refused,
    RubatoError,
    Timeout,
    Unavailable,
    Unsupported,
)
from rubato.session import Plan, Session, current_session, init

__all__ = [
    "Forked",
    "GradientChanged",
    "InvalidCall",
    "JobEnded",
    "JobFailed",
    "NotFound",
    "Plan",
    "Refused",
    "RubatoError",
    "Session",
    "Timeout",
    "Unavailable",
    "Unsupported",
    "__version__",
    "current_session",
    "init",
]
