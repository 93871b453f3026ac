"""Code beside the data never runs, and files that are made to hurt end the process that reads them, not the command."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import struct
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable
from contextlib import closing
from importlib import metadata
from pathlib import Path
from typing import Any

import httpx
import openpyxl
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.cli.program import PROGRAM
from cellrisk.counts import other_formats
from cellrisk.system import isolated
from tests.counts.counter import refused
from tests.web.conftest import Running, hear, upload

resource = pytest.importorskip("resource", reason="the limits of processes are those of POSIX")
pyreadstat = pytest.importorskip("pyreadstat", reason="the extra 'files' is not installed")
pytest.importorskip("python_calamine", reason="the extra 'files' is not installed")

SOURCE = Path(isolated.__file__).parents[2]
PEOPLE = pd.DataFrame({"sex": ["f", "m"] * 20, "job": ["cook", "smith", "cook", "clerk"] * 10})
WRITERS: dict[str, Callable[[Path], Any]] = {
    "people.sav": lambda path: pyreadstat.write_sav(PEOPLE, str(path)),
    "people.dta": lambda path: pyreadstat.write_dta(PEOPLE, str(path)),
    "people.xpt": lambda path: pyreadstat.write_xport(PEOPLE, str(path)),
    "people.xlsx": lambda path: PEOPLE.to_excel(path, index=False),
    "people.csv": lambda path: PEOPLE.to_csv(path, index=False),
    "people.parquet": PEOPLE.to_parquet,
    "people.jsonl": lambda path: PEOPLE.to_json(path, orient="records", lines=True),
}
COLUMNS = "--qid sex --sensitive job"
LEVELS = f"{COLUMNS} --levels sex=f|m --levels job=cook|smith|clerk"
COMMANDS = [
    *(f"inspect {name} {COLUMNS}" for name in WRITERS),
    f"assess people.csv {COLUMNS} --epsilon 1",
    f"explain people.csv {COLUMNS} --epsilon 1",
    f"curve people.csv {COLUMNS} --epsilon 1 --plot curve.png",
    f"choose people.csv {COLUMNS} --max-caused 0.05",
    f"utility people.csv {COLUMNS} --epsilon 1",
    f"simulate people.csv {COLUMNS} --epsilon 1 --releases 5",
    f"release people.csv {LEVELS} --epsilon 1 --output out.csv --ledger ledger.db --new-ledger",
    f"audit people.csv out.csv {COLUMNS}",
    f"publish-risk people.csv {LEVELS} --epsilon 1 --risk-epsilon 1",
    f"choose-private people.csv {LEVELS} --choice-epsilon 1 --max-caused-people 100",
    f"average people.csv {COLUMNS} --epsilon 1 --releases 3",
    f"report people.csv {COLUMNS} --epsilon 1 --output report.html",
    f"report people.csv {LEVELS} --outside drop --public --epsilon 1 --output public.html",
    f"report people.csv {COLUMNS} --epsilon 1 --template page.j2 --output filled.html",
    "together report set.toml --output set.html",
    "together release set.toml --output set",
    "together set.toml",
    "demo",
    "ledger list ledger.db",
    "ledger verify ledger.db",
]
SET = """
source = "people.csv"
sensitive = "job"
levels = ["job=cook|smith|clerk", "sex=f|m"]
[[table]]
name = "by-sex"
qid = ["sex"]
epsilon = 1
"""
LAUNCHER = """
import json, sys
from cellrisk.cli import main
if sys.argv[1] == "serve":
    sys.exit(main())
print(json.dumps([main(words.split()) for words in json.loads(sys.argv[1])]), file=sys.stderr)
"""
"""What the script `cellrisk` does, several times: the first entry of its path is its own folder."""


def plant(folder: Path, mark: Path) -> None:
    """A module of every name that cellrisk or its libraries could import; each leaves a mark, and nothing else."""
    names = {*sys.stdlib_module_names, *metadata.packages_distributions(), *sys.modules, "sitecustomize", "numexpr"}
    for name in {name.partition(".")[0] for name in names} - {"__main__"}:
        code = f"open({str(mark)!r}, 'a').write({name + chr(10)!r})\nraise ImportError({name!r})\n"
        (folder / f"{name.replace('/', '_')}.py").write_text(code, encoding="utf-8")


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder with data and a module of every name, and the file in which those leave their marks."""
    folder, mark = tmp_path_factory.mktemp("planted"), tmp_path_factory.mktemp("marks") / "run"
    plant(folder, mark)
    for name, write in WRITERS.items():
        write(folder / name)
    (folder / "set.toml").write_text(SET, encoding="utf-8")
    (folder / "page.j2").write_text("{{ title }}", encoding="utf-8")
    (folder / "matplotlibrc").write_text("text.usetex: True\nbackend: module://planted\n", encoding="utf-8")
    (folder / "planted.py").write_text(f"open({str(mark)!r}, 'a').write('planted')", encoding="utf-8")
    return folder, mark


def marks(mark: Path) -> list[str]:
    return mark.read_text(encoding="utf-8").split() if mark.exists() else []


@pytest.fixture
def launcher(tmp_path: Path) -> list[str]:
    script = tmp_path / "launcher.py"
    script.write_text(LAUNCHER, encoding="utf-8")
    return [sys.executable, str(script)]


def around(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SOURCE), **more}


def test_every_command_is_tried() -> None:
    """All but the web app, which has a test of its own."""
    known = set(PROGRAM.commands)  # type: ignore[attr-defined]
    assert known - {command.split()[0] for command in COMMANDS} == {"serve"}


def test_what_is_planted_would_run(planted: tuple[Path, Path], tmp_path: Path) -> None:
    """Python with -c, and the workers of multiprocessing, run what is in the working folder."""
    mark = tmp_path / "run"
    (tmp_path / "json.py").write_text(f"open({str(mark)!r}, 'a').write('json')", encoding="utf-8")
    subprocess.run([sys.executable, "-c", "import json"], cwd=tmp_path, check=True, timeout=60)
    assert marks(mark) == ["json"]
    assert {"json", "struct", "pandas", "pyarrow", "numpy", "cellrisk"} <= {path.stem for path in planted[0].iterdir()}


@pytest.mark.slow
def test_no_command_runs_what_is_in_the_working_folder_or_beside_the_data(
    planted: tuple[Path, Path], launcher: list[str]
) -> None:
    folder, mark = planted
    done = subprocess.run(
        [*launcher, json.dumps(COMMANDS)],
        cwd=folder,
        env=around(),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert marks(mark) == []
    codes = dict(zip(COMMANDS, json.loads(done.stderr.splitlines()[-1]), strict=True))
    assert {command: code for command, code in codes.items() if code != 0} == {}, done.stderr


def test_the_web_app_runs_nothing_from_the_working_folder_or_from_uploads(
    planted: tuple[Path, Path], launcher: list[str], tmp_path: Path
) -> None:
    folder, mark = planted
    log = tmp_path / "log"
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    plant(temporary, mark)
    with log.open("w") as errors:
        process = subprocess.Popen(
            [*launcher, "serve", "--no-browser", "--folder", "."],
            cwd=folder,
            env=around(TMPDIR=str(temporary)),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        assert process.stdout is not None
        link = re.search(r"http\S+", process.stdout.readline())
        assert link is not None, (log.read_text(), marks(mark))
        [uploads] = temporary.glob("cellrisk-web-*/uploads")
        plant(uploads, mark)
        with closing(Running(process, link[0], folder, log, temporary).client()) as client:
            use_the_app(client)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
        assert process.stdout is not None
        process.stdout.close()
    assert marks(mark) == []
    assert list(temporary.glob("cellrisk-*")) == []


def use_the_app(client: httpx.Client) -> None:
    """An upload, a file of the folder, and a table of each."""
    sources = [upload(client, PEOPLE.to_csv(index=False)), client.post("/api/sources", json={"path": "people.parquet"})]
    for source in sources:
        chosen = {"source": source.json()["source"], "quasi_identifiers": ["sex"], "sensitive": ["job"]}
        assert "table" in hear(client, client.post("/api/tables", json=chosen))


def test_a_child_imports_nothing_from_a_path_of_the_parent_that_leads_there(
    planted: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a notebook or with -c, where the path of the parent begins with the working folder."""
    folder, mark = planted
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setattr(sys, "path", ["", ".", str(folder), *sys.path])
    for name in ("people.sav", "people.xlsx"):
        assert other_formats.ask_worker(Path(name), None, ["sex", "job"], tmp_path).exists()
    assert marks(mark) == []


def workbook(cell: str) -> bytes:
    """A small workbook with the names of two columns, one record, and a number in one further cell."""
    book, packed = openpyxl.Workbook(), io.BytesIO()
    book.active.append(["sex", "job"])
    book.active.append([1, 2])
    book.active[cell] = 7
    book.save(packed)
    return packed.getvalue()


def open_document(columns: int, rows: int) -> bytes:
    """A small OpenDocument sheet whose last cell is repeated."""
    cell = '<table:table-cell table:number-columns-repeated="{}" office:value-type="float" office:value="1"/>'
    content = (
        '<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
        'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"><office:body><office:spreadsheet>'
        f'<table:table table:name="a"><table:table-row table:number-rows-repeated="{rows}">{cell.format(columns)}'
        "</table:table-row></table:table></office:spreadsheet></office:body></office:document-content>"
    )
    return pack({"mimetype": "application/vnd.oasis.opendocument.spreadsheet", "content.xml": content})


def pack(members: dict[str, str]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return packed.getvalue()


def lie(packed: bytes, member: str, size: int) -> bytes:
    """The same zip, whose directories say that a member has only so many bytes, with their checksum."""
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        checksum = zlib.crc32(archive.read(member)[:size])
        central, local = packed.index(b"PK\1\2"), archive.getinfo(member).header_offset
    changed = bytearray(packed)
    while packed[central + 46 : central + 46 + len(member)] != member.encode():
        central = packed.index(b"PK\1\2", central + 4)
    for place, (crc, length) in ((central, (16, 24)), (local, (14, 22))):
        struct.pack_into("<I", changed, place + crc, checksum)
        struct.pack_into("<I", changed, place + length, size)
    return bytes(changed)


CSV = "sex,job\n" + "f,cook\nm,smith\n" * 20
SAS = bytes(12) + bytes.fromhex("c2ea8160b31411cfbd92080009c7318c181f1011")
HOSTILE: dict[str, tuple[bytes, str]] = {
    "far.xlsx": (workbook("XFD1048576"), "cannot be read, or is damaged"),
    "wide.xlsx": (workbook("XFD60000"), "cannot be read, or is damaged"),
    "far.ods": (open_document(1_000_000, 1_000_000), ""),
    "cut.xlsx": (workbook("C3")[:-300], "cannot be read, or is damaged"),
    "text.xlsx": (b"sex,job\n1,2\n", "cannot be read, or is damaged"),
    "empty.xlsx": (b"", ""),
    "old.xls": (bytes.fromhex("d0cf11e0a1b11ae1") + b"\xff" * 5000, "cannot be read, or is damaged"),
    "start.sas7bdat": (SAS + b"Xanthippe" * 2000, "cannot be read, or is damaged"),  # nothing but SAS writes whole ones
    "nested.xlsx": (pack({"inner.xlsx": "PK" * 100}), "cannot be read, or is damaged"),
    "short.zip": (lie(pack({"people.csv": CSV}), "people.csv", 8 + 14), "(BadZipFile)"),
    "bomb.zip": (lie(pack({"people.csv": CSV * 100_000}), "people.csv", 8 + 14), "(BadZipFile)"),
    "nested.zip": (pack({"inner.zip": "PK"}), "the file in the zip is not a table"),
}


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    return scratch


def test_files_that_are_made_to_hurt_are_one_line_and_leave_nothing(
    tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(other_formats, "MEMORY", 1_500_000_000)
    earlier = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    for name, (content, says) in HOSTILE.items():
        path = tmp_path / name
        path.write_bytes(content)
        assert main(["inspect", str(path), "--qid", "sex", "--sensitive", "job"]) == 2, name
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1), name
        assert says in err, name
        assert "Xanthippe" not in err
        assert list(scratch.iterdir()) == [], name
    unit = 1 if sys.platform == "darwin" else 1024
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit
    before = max(earlier, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * unit  # a new process begins with that
    assert used < max(2_500_000_000, before + 1), "a process took more memory than is allowed"


def test_a_spreadsheet_within_the_limits_is_read(tmp_path: Path) -> None:
    (tmp_path / "people.xlsx").write_bytes(workbook("Z5000"))
    assert cr.tabulate(tmp_path / "people.xlsx", "sex", "job").n_records == 2


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


IN_C = "import re; re.match('(a+)+$', 'a' * 60 + 'b')"
"""An age of the universe in C, where no other thread of Python gets a turn."""


@pytest.mark.parametrize("name", ["people.sav", "people.xlsx"])
def test_a_reader_that_hangs_is_ended(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / name
    if name == "people.xlsx":
        os.mkfifo(path)  # nobody writes into this pipe
    else:
        WRITERS[name](path)
        patch = f"from cellrisk.counts import other_formats; other_formats.answer = lambda _: exec({IN_C!r})"
        monkeypatch.setattr(isolated, "START", isolated.START.replace("main()", f"{patch}; main()"))
    monkeypatch.setattr(other_formats, "PATIENCE", 3)
    with refused("too-large"):
        other_formats.ask_worker(path, None, ["sex"], tmp_path)


HANGING = """
import sys
from pathlib import Path
from cellrisk.counts import other_formats
from cellrisk.system import isolated
start = isolated.start_isolated
def tell(*given):
    process = start(*given)
    print(process.pid, flush=True)
    return process
isolated.start_isolated = tell
other_formats.ask_worker(Path(sys.argv[1]), None, ["sex"], Path())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name)
def test_a_reader_ends_with_its_parent(number: signal.Signals, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "people.xlsx")
    quiet = subprocess.DEVNULL
    start = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n{HANGING}"
    command = [sys.executable, "-c", start, str(tmp_path / "people.xlsx")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=quiet, env=around(), text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.send_signal(number)
        parent.wait(timeout=60)
    until = time.monotonic() + 60
    while is_running(child) and time.monotonic() < until:
        time.sleep(0.05)
    assert not is_running(child)
