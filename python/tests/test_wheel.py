"""The wheel: installs without a network, and what is in it is found and runs."""

from __future__ import annotations

import csv
import io
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

import rubato

BUILD = pathlib.Path(__file__).resolve().parents[1] / "build_wheel.py"


def build(folder, programs=("rubato-sidecar", "rubato", "coordinator", "server")):
    """A wheel whose programs are /bin/echo: what it does with programs is tested here, not what they do."""
    made = folder / "made"
    made.mkdir(exist_ok=True)
    for name in programs:
        shutil.copy("/bin/echo", made / name)
    arguments = [f"--program={made / name}" for name in programs]
    return subprocess.run(
        [
            sys.executable,
            str(BUILD),
            "--library=/bin/echo",
            f"--output={folder / 'dist'}",
            *arguments,
        ],
        capture_output=True,
        text=True,
    )


def test_the_same_files_make_the_same_wheel(tmp_path):
    first = pathlib.Path(build(tmp_path).stdout.strip()).read_bytes()
    second = pathlib.Path(build(tmp_path).stdout.strip()).read_bytes()
    assert first == second


def test_the_record_lists_all_files(tmp_path):
    with zipfile.ZipFile(build(tmp_path).stdout.strip()) as wheel:
        names = set(wheel.namelist())
        text = wheel.read(f"rubato-{rubato.__version__}.dist-info/RECORD").decode()
    assert {row[0] for row in csv.reader(io.StringIO(text))} == names
    assert {"rubato/py.typed", "rubato/torch/optimizer.py", "rubato/_lib/rubato-sidecar"} <= names
    assert not [name for name in names if "__pycache__" in name]


def test_what_is_missing_is_named(tmp_path):
    done = build(tmp_path, programs=("rubato-sidecar", "rubato"))
    assert done.returncode == 1 and "coordinator, server" in done.stderr


def test_what_is_no_program_is_refused(tmp_path):
    (tmp_path / "text").write_text("no program")
    done = subprocess.run(
        [sys.executable, str(BUILD), f"--library={tmp_path / 'text'}", f"--output={tmp_path}"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "an ELF file for x86-64 is expected" in done.stderr


def test_installs_into_a_fresh_environment(tmp_path):
    wheel = build(tmp_path).stdout.strip()
    environment = tmp_path / "venv"
    made = subprocess.run(
        [sys.executable, "-m", "venv", str(environment)], capture_output=True, text=True
    )
    if made.returncode != 0:
        pytest.skip("python3-venv is not installed")
    python = environment / "bin" / "python"
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--no-index", wheel], check=True, timeout=120
    )
    # Neither NumPy nor torch is there, and the source tree is not in the path.
    script = (
        "import rubato, rubato._library as l, rubato._serve as s; "
        "print(rubato.__version__, l.find('NONE', 'rubato-sidecar').name, s.find_program())"
    )
    shown = subprocess.run(
        [python, "-I", "-c", script],
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin"},
    ).stdout.split()
    assert shown[:2] == [rubato.__version__, "rubato-sidecar"]
    assert shown[2].startswith(str(environment))
    # The command becomes the wheel's program: echo, here.
    command = [str(environment / "bin" / "rubato"), "run", "-n", "2"]
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
    assert done.stdout == "run -n 2\n"
