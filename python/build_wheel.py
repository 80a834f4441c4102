"""Packs python/rubato, the client's library and the programs of a job as one wheel, for any Python on Linux x86-64.

    build_wheel.py --output=dist --library=librubato_client.so --program=rubato-sidecar --program=rubato ..

The standard library alone; nothing is fetched. The same files make the same wheel, byte by byte.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import pathlib
import re
import struct
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
TAG = "py3-none-manylinux_2_36_x86_64"
NEEDED_PROGRAMS = ("rubato-sidecar", "rubato", "coordinator", "server")
_X86_64 = 62


def version() -> str:
    """The package's, which is the tree's."""
    text = (HERE / "rubato" / "_version.py").read_text()
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    assert found is not None
    tree = (HERE.parent / "VERSION").read_text().strip()
    if found[1] != tree:
        sys.exit(f"build_wheel: python/rubato/_version.py says {found[1]}, and VERSION says {tree}")
    return tree


def metadata(number: str) -> str:
    """The package's description: the README."""
    readme = (HERE / "README.md").read_text()
    lines = [
        "Metadata-Version: 2.1",
        "Name: rubato",
        f"Version: {number}",
        "Summary: Train any model on parameter servers, and change the consistency mode while it trains",
        "Requires-Python: >=3.9",
        "Provides-Extra: torch",
        "Requires-Dist: torch>=1.13; extra == 'torch'",
        "Provides-Extra: numpy",
        "Requires-Dist: numpy; extra == 'numpy'",
        "Description-Content-Type: text/markdown",
        "",
        readme,
    ]
    return "\n".join(lines)


def check_program(path: pathlib.Path) -> bytes:
    """The file's bytes, if it is a program or library for x86-64."""
    data = path.read_bytes()
    is_elf = data[:5] == b"\x7fELF\x02" and struct.unpack_from("<H", data, 18)[0] == _X86_64
    if not is_elf:
        sys.exit(f"build_wheel: {path}: an ELF file for x86-64 is expected")
    return data


def contents(
    library: pathlib.Path, programs: list[pathlib.Path], number: str
) -> dict[str, tuple[bytes, int]]:
    """name: (bytes, mode) of all files but RECORD."""
    files: dict[str, tuple[bytes, int]] = {}
    for path in sorted((HERE / "rubato").rglob("*")):
        if path.suffix == ".py" or path.name == "py.typed":
            files[path.relative_to(HERE).as_posix()] = (path.read_bytes(), 0o644)
    files["rubato/_lib/librubato_client.so"] = (check_program(library), 0o755)
    for program in programs:
        files[f"rubato/_lib/{program.name}"] = (check_program(program), 0o755)
    missing = [name for name in NEEDED_PROGRAMS if f"rubato/_lib/{name}" not in files]
    if missing:
        sys.exit(f"build_wheel: --program is missing for {', '.join(missing)}")
    info = f"rubato-{number}.dist-info"
    wheel = f"Wheel-Version: 1.0\nGenerator: build_wheel.py\nRoot-Is-Purelib: false\nTag: {TAG}\n"
    scripts = "[console_scripts]\nrubato = rubato._serve:run_program\n"
    files[f"{info}/METADATA"] = (metadata(number).encode(), 0o644)
    files[f"{info}/WHEEL"] = (wheel.encode(), 0o644)
    files[f"{info}/entry_points.txt"] = (scripts.encode(), 0o644)
    return files


def record(files: dict[str, tuple[bytes, int]], name: str) -> bytes:
    """Names, digests and sizes of all files, as installers check them."""
    lines = []
    for path, (data, _) in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(data)}")
    return "\n".join([*lines, f"{name},,", ""]).encode()


def write(path: pathlib.Path, files: dict[str, tuple[bytes, int]]) -> None:
    """In one step: an interrupted run leaves no half wheel."""
    unfinished = path.with_name(f".{path.name}")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (data, mode) in files.items():
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    unfinished.rename(path)


def main() -> None:
    """Builds the wheel that the arguments describe, and prints its path."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--program", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--output", type=pathlib.Path, required=True)
    options = parser.parse_args()
    number = version()
    files = contents(options.library, options.program, number)
    name = f"rubato-{number}.dist-info/RECORD"
    files[name] = (record(files, name), 0o644)
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / f"rubato-{number}-{TAG}.whl"
    write(path, files)
    print(path)


if __name__ == "__main__":
    main()
