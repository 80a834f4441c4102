"""One rank of two, started by a real launcher: prints what it hears of rank 0, on one line. Argument: a file to be made."""

import os
import pathlib
import sys
import time

from rubato import _meet
from rubato._place import find_place

place = find_place(os.environ)
address, keep = _meet.share(place, os.environ, 20.0, lambda: "host:1234")
os.write(1, f"{place.launcher} {place.rank}/{place.size} {address}\n".encode())
met = pathlib.Path(sys.argv[1])
if place.rank == 1:
    met.touch()
# Rank 0 is what the other one hears it from, and in a job it stays.
deadline = time.monotonic() + 20
while not met.exists() and time.monotonic() < deadline:
    time.sleep(0.01)
