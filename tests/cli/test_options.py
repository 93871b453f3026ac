"""An option that would have no effect is refused in one line; a settings file may hold options of other commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from cellrisk.cli import main

TABLE = ("people.csv", "--qid", "sex, town", "--sensitive", "job")
DECLARED = (*TABLE, "--levels", "sex=f|m", "--levels", "town=a|b", "--levels", "job=cook|smith")
ROUNDED = (*TABLE, "--perturbation", "random-rounding:3")
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{'fm'[at % 2]},{'ab'[at % 3 == 0]},{('cook', 'smith')[at % 5 == 0]},{20 + at}" for at in range(40)]
    Path("people.csv").write_text("\n".join(["sex,town,job,age", *rows]), encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("explain", *TABLE, "--epsilon", "1", "--alpha", "1,1"), "No such option: --alpha"),
        (("explain", *TABLE, "--epsilon", "1", "--measure", "expected"), "No such option: --measure"),
        (("inspect", "people.csv", "--plot", "new.svg"), "require --qid and --sensitive; got --plot; leave --plot out"),
        (("inspect", "people.csv", "--bin", "age=5"), "leave --bin out"),
        (("assess", *ROUNDED, "--epsilon", "1"), "has no epsilon, neighbours or noise; got --epsilon"),
        (("assess", *ROUNDED, "--attack", "plurality", "--releases", "2"), "leave --attack, --releases out"),
        (
            ("assess", *TABLE, "--epsilon", "1", "--releases", "2", "--max-caused", "1%"),
            "by one release; got --max-caused",
        ),
        (("audit", "people.csv", *TABLE, "--mechanism", "laplace"), "a mechanism requires --epsilon; got --mechanism"),
        (("audit", "people.csv", *TABLE, "--exception", "none"), "--exception requires --acro"),
        (("release", *DECLARED, "--epsilon", "1", "--purpose", "x", "--output", "new.csv"), "name one: --ledger"),
        (
            ("report", *TABLE, "--epsilon", "1", "--public", "--ledger", "l.db", "--output", "new.html"),
            "--ledger is not for a statement for the public",
        ),
        (("ledger", "add", "l.db", "--epsilon", "1", "--threshold", "1.5"), "--threshold requires --mechanism"),
        (
            ("choose-private", *DECLARED, "--max-caused-people", "9"),
            "Missing option '--choice-epsilon'; add --choice-epsilon NUMBER; see",
        ),
    ],
)
def test_what_would_have_no_effect_is_refused(arguments: tuple[str, ...], told: str, capsys: Capture) -> None:
    assert main(list(arguments)) == 2
    assert told in capsys.readouterr().err
    assert [path.name for path in Path().iterdir()] == ["people.csv"]


def test_options_of_a_settings_file_are_for_those_who_take_them(capsys: Capture) -> None:
    Path("all.toml").write_text('alpha = "1,1"\nsizes = "negbin"\nmissing = "drop"\nmax-caused = "50%"\n', "utf-8")
    for asked in (("explain", *TABLE, "--epsilon", "1"), ("inspect", "people.csv")):
        assert main([*asked, "--config", "all.toml"]) == 0, capsys.readouterr().err


def test_shares_are_also_read_in_percent(capsys: Capture) -> None:
    for limit, code in (("99%", 0), ("0.99", 0), ("60 %", 3), ("0.6", 3)):
        assert main(["assess", *TABLE, "--epsilon", "3", "--certainty", "95%", "--max-ceiling", limit]) == code
        capsys.readouterr()
    assert main(["assess", *TABLE, "--epsilon", "3", "--max-caused", "a%"]) == 2
    assert "--max-caused must be a number; got 'a'; allowed: a share such as 0.005 or 0.5%" in capsys.readouterr().err


def test_a_choice_without_an_epsilon_ends_with_code_3(capsys: Capture) -> None:
    assert main(["choose", *TABLE, "--max-caused", "0.01%", "--max-tvd", "0.01", "--releases", "3"]) == 3
    assert capsys.readouterr().err == "cellrisk: no epsilon keeps every limit\n"
    assert main(["choose", *TABLE, "--max-caused", "99%"]) == 0
