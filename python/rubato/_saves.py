"""`Session.save`: a checkpoint of the job, with what each worker has for itself beside it.

A folder, docs/formats.md: the parts of the job's checkpoint, `client-<rank>.state` of each worker, and `saved.json`, which
is written last. It has its name only when all of it is there.
"""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import re
import secrets
import shutil
import zlib
from typing import Any, BinaryIO

from rubato import errors
from rubato._own_state import FORMAT_VERSION, MANIFEST, OwnState, weights_crc
from rubato._together import Together

# Of Linux.
_HERE, _RENAME_EXCHANGE = -100, 2
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=+-]{0,99}")


class Summed:
    """A file for writing that knows the CRC-32 of its bytes; for `OwnState.write`, which only appends."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.crc = 0
        self.count = 0

    def write(self, data: Any) -> int:
        """Appends."""
        view = memoryview(data).cast("B")
        self.crc = zlib.crc32(view, self.crc)
        self.count += len(view)
        return self._file.write(view)

    def flush(self) -> None:
        """Nothing more is kept here than in the file."""
        self._file.flush()


def save(call: Together, name: str, extra: Any) -> str:
    """Returns the checkpoint's path, on all ranks when it is whole."""
    session, own = call.session, call.own
    parts = call.meet(lambda: _may_save(own, name))
    names = [part["name"] for part in parts]
    call.meet(lambda: _same_names(names))
    kept = {"own": own.kept(), "extra": extra}
    cut = pathlib.Path(call.await_checkpoint())
    session._client.pause(call.what)
    token = call.agree({"token": secrets.token_hex(4)})[0]["token"]
    # Not among the job's own, which come and go.
    folder = cut.parent.with_name(cut.parent.name + "-saved")
    unfinished = folder / f".{name}.{token}"
    try:
        parts = call.attempt(lambda: _write_own(call, kept, cut, unfinished))
        call.attempt(lambda: _finish(call, parts, unfinished, folder / name))
    except BaseException:
        if session.rank == 0:
            shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return str(folder / name)


def _may_save(own: OwnState, name: str) -> dict[str, Any]:
    reason = own.why_not_now()
    if reason:
        raise errors.InvalidCall(reason)
    if not _NAME.fullmatch(name):
        raise errors.InvalidCall(
            f"the name {name!r}: letters, digits and any of . _ = + - are allowed, at most 100, a letter or digit first"
        )
    return {"name": name}


def _same_names(names: list[str]) -> dict[str, Any]:
    if len(set(names)) > 1:
        raise errors.InvalidCall(f"ranks give different names: {', '.join(map(repr, names))}")
    return {}


def _write_own(
    call: Together, kept: dict[str, Any], cut: pathlib.Path, unfinished: pathlib.Path
) -> dict[str, Any]:
    os.makedirs(unfinished, exist_ok=True)
    if call.session.rank == 0:
        _link_all(cut, unfinished)
    file = _own_file(call.session.rank)
    with open(unfinished / file, "wb") as stream:
        summed = Summed(stream)
        call.own.write(kept, summed)  # type: ignore[arg-type]
        stream.flush()
        os.fsync(stream.fileno())
    return {"file": file, "bytes": summed.count, "crc32": summed.crc}


def _own_file(rank: int) -> str:
    return f"client-{rank}.state"


def _link_all(cut: pathlib.Path, to: pathlib.Path) -> None:
    """The job removes its checkpoints one day; what is written is never written again."""
    if not (cut / "cut").exists():
        raise errors.Unavailable(
            f"the job's checkpoint is not at {cut} on rank 0's host: a job on several hosts needs a "
            "checkpoint.directory that all of them share"
        )
    for entry in sorted(cut.iterdir()):
        if entry.name.startswith(".") or not entry.is_file():
            continue
        try:
            os.link(entry, to / entry.name)
        except OSError:
            shutil.copyfile(entry, to / entry.name)


def _finish(
    call: Together, parts: list[dict[str, Any]], unfinished: pathlib.Path, place: pathlib.Path
) -> dict[str, Any]:
    """Rank 0: the list of what there is, and the name."""
    if call.session.rank != 0:
        return {}
    manifest = {
        "format_version": FORMAT_VERSION,
        "workers": parts,
        "model": call.own.described(),
        "weights_crc32": None if call.own.keeps_weights else weights_crc(call.own),
    }
    with open(unfinished / MANIFEST, "w", encoding="utf-8") as stream:
        json.dump(manifest, stream)
        stream.flush()
        os.fsync(stream.fileno())
    _sync(unfinished)
    _put_in_place(unfinished, place)
    return {}


def _put_in_place(unfinished: pathlib.Path, place: pathlib.Path) -> None:
    if place.exists():
        if not _exchange(unfinished, place):
            # A file system that cannot do it at once.
            aside = unfinished.with_name(unfinished.name + ".replaced")
            os.rename(place, aside)
            os.rename(unfinished, place)
            unfinished = aside
    else:
        os.rename(unfinished, place)
    _sync(place.parent)
    shutil.rmtree(unfinished, ignore_errors=True)


def _exchange(one: pathlib.Path, other: pathlib.Path) -> bool:
    """Each folder gets the other's name, with no moment in between. False: nothing has changed."""
    renameat2 = getattr(ctypes.CDLL(None), "renameat2", None)
    if renameat2 is None:
        return False
    return bool(renameat2(_HERE, bytes(one), _HERE, bytes(other), _RENAME_EXCHANGE) == 0)


def _sync(directory: pathlib.Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
