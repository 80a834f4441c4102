"""`Session.load`: goes on from what `Session.save` has written, if it fits."""

from __future__ import annotations

import json
import pathlib
import zlib
from typing import Any

from rubato import errors
from rubato._own_state import FORMAT_VERSION, MANIFEST, weights_crc
from rubato._together import Together


def load(call: Together, path: str, check_weights: bool) -> Any:
    """Returns what was given to `save` as extra."""
    kept: dict[str, Any] = {}
    call.session._client.pause(call.what)

    def read() -> dict[str, Any]:
        reason = call.own.why_not_now()
        if reason:
            raise errors.InvalidCall(reason)
        manifest = _read_manifest(pathlib.Path(path))
        kept.update(_read_own(call, manifest, pathlib.Path(path)))
        if check_weights:
            _check_weights(call, manifest, pathlib.Path(path))
        return {}

    call.attempt(read)
    call.own.take(kept["own"])
    return kept["extra"]


def _read_own(call: Together, manifest: dict[str, Any], path: pathlib.Path) -> dict[str, Any]:
    _check_same(call, manifest)
    entry = manifest["workers"][call.session.rank]
    file = path / entry["file"]
    crc, count = 0, 0
    try:
        with open(file, "rb") as stream:
            while data := stream.read(1 << 20):
                crc, count = zlib.crc32(data, crc), count + len(data)
            if (count, crc) != (entry["bytes"], entry["crc32"]):
                raise errors.Refused(
                    f"{file} is damaged: {count} bytes with CRC-32 {crc:08x}, and {MANIFEST} says "
                    f"{entry['bytes']} with {entry['crc32']:08x}"
                )
            stream.seek(0)
            kept: dict[str, Any] = call.own.read(stream)
    except FileNotFoundError as error:
        raise errors.Refused(f"{file} is missing") from error
    call.own.check(kept["own"])
    return kept


def _read_manifest(path: pathlib.Path) -> dict[str, Any]:
    try:
        text = (path / MANIFEST).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise errors.NotFound(
            f"{path} is no checkpoint of Session.save: there is no {MANIFEST}"
        ) from error
    try:
        manifest: dict[str, Any] = json.loads(text)
        version = manifest["format_version"]
        known = version > FORMAT_VERSION or (
            isinstance(manifest["model"], dict)
            and "weights_crc32" in manifest
            and all({"file", "bytes", "crc32"} <= set(worker) for worker in manifest["workers"])
        )
    except (ValueError, TypeError, KeyError):
        known, version = False, 0
    if not known:
        raise errors.Refused(f"{path / MANIFEST} is damaged")
    if version > FORMAT_VERSION:
        raise errors.Refused(
            f"{path / MANIFEST} has version {version}, and this package knows {FORMAT_VERSION}: use a newer one"
        )
    return manifest


def _check_same(call: Together, manifest: dict[str, Any]) -> None:
    size = len(manifest["workers"])
    if size != call.session.size:
        raise errors.Refused(f"it is of {size} workers, and this job has {call.session.size}")
    theirs, ours = manifest["model"], call.own.described()
    for field, value in ours.items():
        other = theirs.get(field)
        if isinstance(value, list) and isinstance(other, list):
            for index in range(max(len(value), len(other))):
                here = value[index] if index < len(value) else "nothing"
                there = other[index] if index < len(other) else "nothing"
                if here != there:
                    raise errors.Refused(
                        f"it is of another model: {field}[{index}] is {there} there, and {here} here"
                    )
        elif value != other:
            raise errors.Refused(
                f"it is of another training: {field} is {other} there, and {value} here"
            )


def _check_weights(call: Together, manifest: dict[str, Any], path: pathlib.Path) -> None:
    if call.own.keeps_weights or manifest["weights_crc32"] == weights_crc(call.own):
        return
    raise errors.Refused(
        "the weights of this job are not those of the checkpoint: load before the first step, in a job that goes on "
        f"from it: rubato run --set training.start_from={path.absolute()}"
    )
