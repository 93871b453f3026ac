"""The command line, run as a person would: arguments in, text or JSON and an exit code out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest
import typer

from cellrisk.cli import find_refusal, options
from cellrisk.cli.options import PriorOptions
from cellrisk.cli.program import PROGRAM
from tests.cli.test_program import COMMANDS
from tests.commands import SECRET, refuse, run

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Twelve people, one of whom has a value that no message may show."""
    rows = [
        "age,sex,ward,illness,weight",
        *[f"{20 + i},{'fm'[i % 2]},w{i % 3},{'ab'[i % 4 == 0]},{i % 4}" for i in range(11)],
    ]
    rows.append(f"40,f,{SECRET},{SECRET},1")
    path = tmp_path / "people.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


BASIC = ("--qid", "sex,ward", "--sensitive", "illness")


def test_assess_prints_one_screen_and_everything_with_all(capsys: Capture, table: Path) -> None:
    code, out, err = run(capsys, "assess", table, *BASIC, "--epsilon", "1")
    assert (code, err) == (0, "")
    assert "Geometric noise, epsilon 1: a published count is within 3 of the true one in 97 of 100 cases." in out
    assert len(out.splitlines()) <= 16
    assert "marginal" not in out
    code, out, err = run(capsys, "assess", table, *BASIC, "--epsilon", "1", "--all")
    assert (code, err) == (0, "")
    for word in ("local", "expected", "shrinkage", "marginal", "marginal_shrinkage", "published", "exact", "tight"):
        assert word in out


def test_assess_json_is_one_document(capsys: Capture, table: Path) -> None:
    code, out, err = run(capsys, "assess", table, *BASIC, "--epsilon", "1", "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert {"table", "unit", "mechanism", "risks", "decision", "attackers"} <= set(document)
    assert len(document["risks"]) == 27


def test_options_reach_the_library(capsys: Capture, table: Path) -> None:
    code, out, _ = run(
        capsys, "assess", table, "--qid", "age", "--qid", "sex", "--sensitive", "illness", "--bin", "age=0/25/60",
        "--mechanism", "gaussian-analytic", "--epsilon", "2", "--delta", "1e-3", "--neighbours", "replace",
        "--threshold", "1.5", "--measure", "local,shrinkage", "--form", "exact", "--weights", "uniform",
        "--alpha", "1,2,3,4", "--levels", f"illness=a|b|{SECRET}|d", "--json",
    )  # fmt: skip
    assert code == 0
    document = json.loads(out)
    assert document["table"]["cells"] == 4
    assert document["table"]["sensitive"]["illness"]["levels"] == 4
    assert document["mechanism"]["neighbours"] == "replace"
    assert document["mechanism"]["threshold"] == 1.5
    assert [row["measure"] for row in document["risks"]] == ["local", "shrinkage"]
    assert document["fitted"]["illness"]["alpha"]["alpha"] == [1, 2, 3, 4]


def test_inspect(capsys: Capture, table: Path) -> None:
    code, out, err = run(capsys, "inspect", table, *BASIC)
    assert (code, err) == (0, "")
    assert out.startswith("12 records in ")
    code, out, _ = run(capsys, "inspect", table, *BASIC, "--json")
    assert json.loads(out)["records"] == 12


def test_demo(capsys: Capture) -> None:
    code, out, err = run(capsys, "demo")
    assert (code, err) == (0, "")
    assert out.startswith(
        "'income' by age, relationship, education, race, sex, hours-per-week: 27,504 people in 5,009 "
    )
    rows = {" ".join(line.split()) for line in out.splitlines()}
    assert "Homogeneity attack (DR-HA) 25.0% 30.7% 40.4% 1,148 4.2% 9.6% 33.8%" in rows
    assert "Largest count 37.5% 79.7% 84.7% 1,904 6.9% 11.9% 40.0%" in rows
    assert "Informed attacker, 95% sure 0% 40.6% 46.9% 1,047 3.8% 9.7% 34.2%" in rows
    assert "Any attack, at most 46.3% 100% 46.3%" in rows
    code, out, _ = run(capsys, "demo", "--epsilon", "0.1", "--json")
    assert json.loads(out)["mechanism"]["epsilon"] == 0.1


def test_the_demo_table_can_be_kept(capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "demo", "--save", "adult.parquet")
    assert (code, err) == (0, "")
    assert "cellrisk assess adult.parquet" in out
    assert (
        json.loads(run(capsys, "inspect", "adult.parquet", "--qid", "sex", "--sensitive", "income", "--json")[1])[
            "records"
        ]
        == 32561
    )
    code, _, err = run(capsys, "demo", "--save", "no/folder.parquet")
    assert (code, err.count("\n")) == (2, 1)


def test_gate(capsys: Capture, table: Path) -> None:
    arguments = ("assess", table, *BASIC, "--epsilon", "5")
    assert run(capsys, *arguments, "--max-risk", "1")[0] == 0
    code, out, err = run(capsys, *arguments, "--max-risk", "0.001")
    assert code == 3
    assert "Geometric noise, epsilon 5: " in out
    assert "asked for was a risk of at most 0.1% (local risk, tight, by records); it is " in err
    narrowed = (*arguments, "--measure", "local", "--form", "published", "--weights", "uniform", "--json")
    code, out, _ = run(capsys, *narrowed, "--max-risk", "0.2")
    assert (code == 3) == (json.loads(out)["risks"][0]["risk"] > 0.2)


def test_config_file(capsys: Capture, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cellrisk.toml").write_text(
        'qid = ["sex", "ward"]\nsensitive = "illness"\nepsilon = 2.0\nalpha = [1, 1, 1]\nno-zero-truncation = true\n'
        'json = true\n[inspect]\nmissing = "error"\n',
        encoding="utf-8",
    )
    code, out, _ = run(capsys, "assess", table)
    assert code == 0
    document = json.loads(out)
    assert document["mechanism"]["epsilon"] == 2.0
    assert document["fitted"]["illness"]["alpha"]["alpha"] == [1, 1, 1]
    assert document["fitted"]["illness"]["sizes"]["truncated"] is False
    assert json.loads(run(capsys, "assess", table, "--epsilon", "3")[1])["mechanism"]["epsilon"] == 3.0
    other = tmp_path / "other.toml"
    other.write_text('bin = {age = [0, 25, 60]}\nqid = "age"\nsensitive = "illness"\n', encoding="utf-8")
    assert json.loads(run(capsys, "inspect", table, "--config", other, "--json")[1])["cells"] == 2


def options_of(command: str, text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the options of a command become with these settings."""
    monkeypatch.chdir(folder)
    Path("cellrisk.toml").write_text(text, encoding="utf-8")
    outer = PROGRAM
    words = ["x.csv", "--output", "o.csv"] if command == "release" else ["x.csv"]
    inner = outer.commands[command]  # type: ignore[attr-defined]
    return dict(inner.make_context(command, words, parent=typer.Context(outer)).params)


def read_alpha(parsed: Any) -> Any:
    return PriorOptions(alpha=parsed).priors.alpha


@pytest.mark.parametrize(
    ("text", "name", "read", "means"),
    [
        ("levels = {y = [1, 2, 3]}", "levels", dict, {"y": ["1", "2", "3"]}),
        ("levels = {y = [true, false]}", "levels", dict, {"y": ["true", "false"]}),
        ("levels = {y = [1, 'a', 2.5, true]}", "levels", dict, {"y": ["1", "a", "2.5", "true"]}),
        ("levels = {y = [2020-01-31, 'a/b']}", "levels", dict, {"y": ["2020-01-31", "a/b"]}),
        ("levels = {y = 'a|b', z = 1}", "levels", dict, {"y": ["a", "b"], "z": ["1"]}),
        ("levels = {'y=a' = ['a|b', 'c;d']}", "levels", dict, {"y=a": ["a|b", "c;d"]}),
        ("exclude = {a = ['m|w;b=2']}", "exclude", list, [{"a": ["m|w;b=2"]}]),
        ("bin = {a = [0, 2.5, 9], b = 5}", "bin", dict, {"a": [0, 2.5, 9], "b": 5}),
        ("bin = {a = '0/18/65'}", "bin", dict, {"a": [0, 18, 65]}),
        ("alpha = {y = [1, 2], z = 'moments'}", "alpha", read_alpha, {"y": (1, 2), "z": "moments"}),
        ("alpha = [1, 2]", "alpha", read_alpha, (1, 2)),
        ("exclude = {a = 'm', b = '2'}", "exclude", list, [{"a": ["m"], "b": ["2"]}]),
        ("exclude = {a = ['m', 'w'], b = [1, true]}", "exclude", list, [{"a": ["m", "w"], "b": ["1", "true"]}]),
        ("exclude = [{a = 'm'}, {a = 2, b = 3}]", "exclude", list, [{"a": ["m"]}, {"a": ["2"], "b": ["3"]}]),
        ("exclude = 'a=m;b=2'", "exclude", list, [{"a": ["m"], "b": ["2"]}]),
        ("no-clamp = true", "clamp", bool, False),
        ("clamp = false", "clamp", bool, False),
        ("sparse = false", "dense", bool, True),
        ("force = true", "force", bool, True),
    ],
)
def test_settings_mean_what_they_say(
    text: str, name: str, read: Any, means: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = "assess" if name == "alpha" else "release"
    assert read(options_of(command, f"[{command}]\n{text}\n", tmp_path, monkeypatch)[name]) == means


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("levels = {y = [['a'], 'c']}", "got a list; allowed: one table for all columns, or a list of texts: levels"),
        ("levels = {y = {z = 1}}", "got a table; allowed: one table for all columns"),
        ("levels = [{y = ['a']}]", "got a table; allowed: one table for all columns"),
        ("bin = {a = ['1/2', 3]}", "--bin must be a number; got '1/2'"),
        ("exclude = [{}]", "the setting 'exclude' cannot be read; got a table; allowed: texts or numbers"),
        ("exclude = [{a = 1}, 2]", "--exclude cannot be read; got '2'"),
        ("epsilon = {a = 1}", "the setting 'epsilon' cannot be read; got a table"),
        ("no-clamp = 'false'", "the setting 'no-clamp' is a switch; allowed: true or false"),
        ("no-clamp = 0", "the setting 'no-clamp' is a switch"),
        ("sparse = 'no'", "the setting 'sparse' is a switch"),
    ],
)
def test_settings_that_would_mean_something_else_are_refused(
    capsys: Capture, text: str, says: str, tmp_path: Path
) -> None:
    config = tmp_path / "bad.toml"
    config.write_text(f"[release]\n{text}\n", encoding="utf-8")
    assert says in refuse(capsys, "release", "x.csv", "--output", "o.csv", "--config", config)


@pytest.mark.parametrize(
    ("text", "says"),
    [("epsilom = 1", "unknown setting"), ("epsilon = = 1", "not valid TOML")],
)
def test_bad_config_is_refused(capsys: Capture, table: Path, tmp_path: Path, text: str, says: str) -> None:
    config = tmp_path / "bad.toml"
    config.write_text(text, encoding="utf-8")
    assert says in refuse(capsys, "assess", table, *BASIC, "--epsilon", "1", "--config", config)
    assert "does not exist" in refuse(capsys, "assess", table, *BASIC, "--config", tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        (["--epsilon", "0"], "epsilon must be"),
        ([], "no epsilon"),
        (["--epsilon", "1", "--mechanism", "gauss"], "'--mechanism': 'gauss' is not one of 'laplace'"),
        (["--epsilon", "1", "--measure", "global"], "unknown measure"),
        (["--epsilon", "1", "--alpha", "1,x,1"], "--alpha must be a number; got 'x'; allowed: mle, moments or numbers"),
        (["--epsilon", "1", "--alpha", "mle", "--alpha", "illness=1,1"], "--alpha is given more than once"),
        (["--epsilon", "1", "--sizes", "normal"], "sizes"),
        (["--epsilon", "1", "--qid", "sx"], "sx"),
        (["--epsilon", "1", "--levels", "illness=a|b"], "illness"),
        (["--epsilon", "1", "--levels", "illness"], "--levels"),
        (["--epsilon", "1", "--no-such-option"], "no-such-option"),
    ],
)
def test_bad_input_is_one_line_and_code_2(capsys: Capture, table: Path, extra: list[str], says: str) -> None:
    assert says in refuse(capsys, "assess", table, *BASIC, *extra)


def test_every_number_is_read_before_the_work_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one line names the option and what was given, from the command line and from a settings file."""
    monkeypatch.chdir(tmp_path)
    root = PROGRAM
    found = 0
    for words, command in COMMANDS.items():
        path = words.split()
        context = typer.Context(root)
        for name in path[:-1]:
            context = typer.Context(root.commands[name], parent=context, info_name=name)  # type: ignore[attr-defined]
        for option in command.params:
            needed = [
                word
                for each in command.params
                if each.required and each is not option
                for word in ([each.opts[0], "1"] if each.opts[0].startswith("--") else [each.name])
            ]
            if option.metavar in ("NUMBER", "NUMBERS", "SHARE", "SHARES", "SECONDS", "LOW:HIGH"):
                name = option.opts[0]
                with pytest.raises(typer.BadParameter) as refusal:
                    command.make_context(path[-1], [*needed, name, "ten"], parent=context)
                said = str(find_refusal(refusal.value))
                assert said.startswith(f"{name} must be a ")
                assert "got 'ten'" in said
                lines = [f"[{'.'.join(path)}]", f"{name.removeprefix('--')} = true"]
                Path("cellrisk.toml").write_text("\n".join(lines), encoding="utf-8")
                with pytest.raises(typer.BadParameter) as refusal:
                    command.make_context(path[-1], list(needed), parent=context)
                Path("cellrisk.toml").unlink()
                said = str(find_refusal(refusal.value))
                assert said.startswith(f"{name} must be a ")
                assert "got 'True'" in said
                found += 1
    assert found > 50


def test_bad_files_are_one_line_and_code_2(capsys: Capture, tmp_path: Path) -> None:
    empty, header, binary, parquet = (tmp_path / name for name in ("e.csv", "h.csv", "b.csv", "p.parquet"))
    empty.write_bytes(b"")
    header.write_bytes(b"sex,ward,illness\n")
    binary.write_bytes(bytes(range(256)) * 20)
    parquet.write_bytes(b"not parquet at all")
    for source in (tmp_path / "none.csv", empty, header, binary, parquet, tmp_path, tmp_path / "*.tsv"):
        message = refuse(capsys, "assess", source, *BASIC, "--epsilon", "1")
        assert "internal error" not in message
        refuse(capsys, "inspect", source, *BASIC)


def test_missing_arguments(capsys: Capture, table: Path) -> None:
    assert "--qid" in refuse(capsys, "assess", table, "--sensitive", "illness", "--epsilon", "1")
    assert "--sensitive" in refuse(capsys, "assess", table, "--qid", "sex", "--epsilon", "1")
    assert "FILE" in refuse(capsys, "assess")
    assert "frobnicate" in refuse(capsys, "frobnicate")


def test_internal_errors_show_no_data(capsys: Capture, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*_: object, **__: object) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr("cellrisk.tabulate", explode)
    code, out, err = run(capsys, "inspect", table, *BASIC)
    assert (code, out) == (1, "")
    assert "internal error (RuntimeError)" in err
    assert SECRET not in err


def test_a_reader_that_goes_away_is_no_error(table: Path) -> None:
    command = (
        f"{sys.executable} -c 'import sys; from cellrisk.cli import main; sys.exit(main())' inspect {table} "
        + " ".join(BASIC)
    )
    done = subprocess.run(["bash", "-c", f"{command} | true"], capture_output=True, text=True, check=False, timeout=300)
    assert done.stderr == ""


def test_limits_and_tables_reach_the_engine(capsys: Capture, table: Path, tmp_path: Path) -> None:
    assert "memory limit" in refuse(capsys, "inspect", table, *BASIC, "--memory-limit", "lots")
    assert run(capsys, "inspect", table, *BASIC, "--memory-limit", "500MB")[0] == 0
    store = tmp_path / "store.duckdb"
    with duckdb.connect(str(store)) as connection:
        connection.execute(f"CREATE TABLE people AS SELECT * FROM read_csv('{table}', all_varchar = true)")
    plain = run(capsys, "inspect", table, *BASIC, "--json")[1]
    assert run(capsys, "inspect", store, "--table", "people", *BASIC, "--json")[1] == plain
    assert "--table" in refuse(capsys, "inspect", store, *BASIC)


def test_progress_shows_on_a_terminal_only(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    assert options.progress_bar("counting") is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    show = options.progress_bar("counting")
    assert show is not None
    show(0.25)
    show(1.0)
    assert capsys.readouterr().err == "\rcounting:  25%\r              \r"


@pytest.mark.parametrize(("words", "code"), [(["--version"], 0), (["no-such-command"], 2)])
def test_a_command_ends_at_once_after_what_was_left_for_the_end(words: list[str], code: int) -> None:
    """What libraries leave for the end is done, a thread ends by itself, and then nothing is taken apart."""
    script = """
import atexit, sys, threading, time
from cellrisk.cli import main
class Object:
    def __del__(self):
        print("taken apart")
kept = Object()
ended = main()
atexit.register(print, "tidied up")
threading.Thread(target=lambda: (time.sleep(0.2), print("thread ended"))).start()
sys.exit(ended)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == code
    assert done.stdout.splitlines()[-2:] == ["thread ended", "tidied up"]
