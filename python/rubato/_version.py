"""The version of this package; the library beside it has the same."""

__version__ = "0.1.0"
