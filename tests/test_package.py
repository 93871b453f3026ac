"""The package as it goes out: what it says of itself, its bytes, and that it works where nothing else is installed.

`make package` runs all of this; `make pythons` also on every Python that is found, with the oldest libraries allowed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPOSITORY = Path(__file__).resolve().parents[1]
PROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
VERSION = PROJECT["project"]["version"]
MOMENT = "1700000000"
"""The time that is written into the files of a package, in seconds; a release takes that of its commit."""
TOOLS = ("build", "check_wheel_contents", "hatch_fancy_pypi_readme", "hatchling", "twine", "uv")
needs_tools = pytest.mark.skipif(
    any(importlib.util.find_spec(tool) is None for tool in TOOLS), reason="make setup installs what builds packages"
)
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
OFFLINE = ("dns error", "network", "Failed to fetch", "error sending request")
CORE = ("tests/noise/test_distributions.py", "tests/noise/test_mechanisms.py", "tests/risk/test_people.py")
"""What is tested with the oldest libraries: noise, mechanisms and people, from a table to an answer."""


def test_one_version_everywhere() -> None:
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - (unreleased|\d{4}-\d\d-\d\d)$", changelog, flags=re.MULTILINE)
    assert headings[0][0] == VERSION
    assert all(date != "unreleased" for _, date in headings[1:]), "an older version has no date"
    assert [version for version, _ in headings] == sorted((version for version, _ in headings), reverse=True)
    citation = (REPOSITORY / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.*)$", citation, flags=re.MULTILINE)[1] == VERSION  # type: ignore[index]


def test_pythons_are_those_that_are_named() -> None:
    named = [each.rpartition(" ")[2] for each in PROJECT["project"]["classifiers"] if "Python :: 3." in each]
    assert tuple(named) == PYTHONS
    assert PROJECT["project"]["requires-python"] == f">={PYTHONS[0]}"


def test_the_readme_begins_with_what_a_newcomer_types() -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert text.index("pip install cellrisk\n") < text.index("cellrisk demo --save") < text.index("make run")


@cache
def describe_for_an_index() -> str:
    """The README as an index of packages shows it, by the substitutions that the build makes."""
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    for each in PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    return text


def test_an_index_of_packages_shows_no_dead_link() -> None:
    text = describe_for_an_index()
    assert re.findall(r"\]\((?!https?:)", text) == []
    assert "![" not in text


def build(source: Path, target: Path) -> tuple[Path, Path]:
    """The wheel and the source distribution that are built from a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target), str(source)],
        env={**os.environ, "SOURCE_DATE_EPOCH": MOMENT},
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,), (archive,) = target.glob("*.whl"), target.glob("*.tar.gz")
    return wheel, archive


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build(REPOSITORY, tmp_path_factory.mktemp("dist"))


@pytest.mark.slow
@needs_tools
def test_the_same_files_give_the_same_bytes(built: tuple[Path, Path], tmp_path: Path) -> None:
    """From a copy in another place, whose files have other times, and where others may not read them."""
    copy = tmp_path / "copy"
    with tarfile.open(built[1]) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    for name in names:
        if name not in ("PKG-INFO", ".gitignore"):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, copy / name)
            (copy / name).chmod(0o600)
            os.utime(copy / name, (0, 1_600_000_000))
    shutil.copy(REPOSITORY / ".gitignore", copy / ".gitignore")
    again = build(copy, tmp_path / "dist")
    for one, other in zip(built, again, strict=True):
        assert one.name == other.name
        assert hashlib.sha256(one.read_bytes()).digest() == hashlib.sha256(other.read_bytes()).digest(), one.name


@pytest.mark.slow
@needs_tools
def test_the_files_of_a_package(built: tuple[Path, Path]) -> None:
    wheel, archive = built
    for command in (["twine", "check", "--strict", str(wheel), str(archive)], ["check_wheel_contents", str(wheel)]):
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=REPOSITORY, check=False, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
    with zipfile.ZipFile(wheel) as inside:
        names = set(inside.namelist())
        (about,) = (inside.read(name).decode() for name in names if name.endswith(".dist-info/METADATA"))
    assert {"cellrisk/py.typed", "cellrisk/data/adult.parquet", "cellrisk/web/page/index.html.j2"} <= names
    assert about.partition("\n\n")[2].strip() == describe_for_an_index().strip()
    assert "License-Expression: Apache-2.0 AND CC-BY-4.0" in about
    with tarfile.open(archive) as inside:
        names = {name.partition("/")[2] for name in inside.getnames()}
    assert {"README.md", "CHANGELOG.md", "CITATION.cff", "SECURITY.md", "Makefile", "tests/test_package.py"} <= names


def run(*command: str | Path, expected: int = 0, **options: Any) -> str:
    """What a command prints, away from this repository."""
    surroundings = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in command],
        env={**surroundings, "NO_COLOR": "1", "UV_PYTHON_DOWNLOADS": "never"},
        check=False,
        capture_output=True,
        text=True,
        timeout=3600,
        **options,
    )
    if command[:3] == UV and any(sign in done.stderr for sign in OFFLINE):
        pytest.skip("packages cannot be fetched here")
    assert done.returncode == expected, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


UV = (sys.executable, "-m", "uv")


def find_python(version: str) -> str:
    """The interpreter of that version, of the system or of pyenv; the test is skipped where there is none."""
    found = shutil.which(f"python{version}")
    places = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    for python in [*map(str, places), *([found] if found else [])]:
        if subprocess.run([python, "-c", ""], check=False, capture_output=True, timeout=60).returncode == 0:
            return python
    pytest.skip(f"there is no Python {version} here")


def install(wheel: Path, folder: Path, python: str, *more: str) -> Path:
    """The interpreter of a new environment that holds the wheel, what it asks for, and nothing else."""
    run(*UV, "venv", "--quiet", "--python", python, folder)
    made = folder / "bin" / "python"
    run(*UV, "pip", "install", "--quiet", "--python", made, wheel, *more)
    run(*UV, "pip", "check", "--quiet", "--python", made)
    return made


def use(python: Path, folder: Path) -> None:
    """What a newcomer does first, in a folder of his own."""
    command = python.parent / "cellrisk"
    assert run(command, "--version", cwd=folder) == f"cellrisk {VERSION}\n"
    assert "Look at a table:" in run(command, "--help", cwd=folder)
    assert run(command, "demo", "--save", "adult.parquet", cwd=folder).startswith("'income' by age, relationship, ")
    said = run(python, "-m", "cellrisk", "inspect", "adult.parquet", cwd=folder)
    assert "marital-status" in said
    run(command, "serve", "--no-browser", expected=2, cwd=folder)  # an extra that is not there


@pytest.mark.slow
@needs_tools
def test_a_new_environment(built: tuple[Path, Path], tmp_path: Path) -> None:
    use(install(built[0], tmp_path / "environment", sys.executable), tmp_path)
    said = run(*UV, "tool", "run", "--from", built[0], "cellrisk", "--version", cwd=tmp_path)  # uvx
    assert said == f"cellrisk {VERSION}\n"


all_pythons = pytest.mark.skipif(
    not os.environ.get("CELLRISK_PYTHONS"), reason="make pythons runs it: a new environment for each Python"
)


@pytest.mark.slow
@needs_tools
@all_pythons
@pytest.mark.parametrize("version", PYTHONS)
@pytest.mark.parametrize("resolution", ["highest", "lowest-direct"])
def test_other_pythons(version: str, resolution: str, built: tuple[Path, Path], tmp_path: Path) -> None:
    python = find_python(version)
    named = PROJECT["project"]["dependencies"]  # those of a wheel alone would be nobody's direct ones
    wheels = ["--only-binary", ":all:"]  # the oldest may not be built for a newer Python
    made = install(built[0], tmp_path / "environment", python, "--resolution", resolution, *wheels, *named)
    use(made, tmp_path)
    tests = ["pytest>=9", "hypothesis", "mpmath", "tomli; python_version < '3.11'"]
    run(*UV, "pip", "install", "--quiet", "--python", made, *tests)
    shutil.copytree(REPOSITORY / "tests", tmp_path / "tests")
    quiet = ["-q", "-p", "no:cacheprovider", "--import-mode=importlib", "-m", "not slow", "-W", "default"]
    run(made, "-m", "pytest", *quiet, "-o", "markers=slow: long", *CORE, cwd=tmp_path)
