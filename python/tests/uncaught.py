"""A program whose session ends by an exception that nobody catches: uncaught.py ERROR|JobEnded|exit."""

import os
import sys

import rubato
from rubato import _library

if os.environ.get("RUBATO_TEST_REAL") != "1":
    import fake_library

    library = fake_library.FakeLibrary()
    _library.load = lambda: library

session = rubato.init()
if sys.argv[1] == "JobEnded":
    raise rubato.JobEnded("stopped by somebody")
if sys.argv[1] == "ERROR":
    raise ValueError("bad picture 18")
