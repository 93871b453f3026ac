"""Names and values that hide something are shown with it, wherever people read them; data keeps it as it is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.errors import InvalidInput, visible
from cellrisk.show.pictures import save
from cellrisk.system.formatting import aligned

HIDDEN = [
    *map(chr, [*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2028, 0x2029]),
    *map(chr, [*range(0x202A, 0x202F), 0x2060, *range(0x2066, 0x206A), 0xFEFF, 0xAD, 0xD800, 0xDFFF, 0xE0001]),
]
TURN, CLEAR, MARK = "\u202e", "\x1b[2J", "\u2066"
QID, SENSITIVE = f"to{TURN}wn", f"jo{MARK}b"
VALUES = (f"U{TURN}lm", f"Bo{CLEAR}nn", "Kö\u200bln")
LEVELS = (f"co{TURN}ok", "sm\u2069ith")


def hides(text: str) -> bool:
    return any(each in text for each in HIDDEN if each not in "\n\t")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rows = [(VALUES[place % 3], LEVELS[place % 7 > 4]) for place in range(60)]
    return pd.DataFrame(rows, columns=[QID, SENSITIVE])


@pytest.fixture(scope="module")
def table(frame: pd.DataFrame) -> cr.FrequencyTable:
    return cr.tabulate(frame, QID, SENSITIVE)


@given(st.text(alphabet=st.one_of(st.sampled_from(HIDDEN), st.characters())))
def test_nothing_is_hidden_and_nothing_is_lost(text: str) -> None:
    shown = visible(text, "")
    assert not any(each in shown for each in HIDDEN)
    assert json.loads(f'"{shown}"') == text if not set(text) & {'"', "\\"} else True
    assert visible(shown, "") == shown
    shown.encode("utf-8")


def test_what_can_be_seen_stays_as_it_is() -> None:
    for text in ("income", "Köln", "東京", "שלום", "٣٤", "≤ 50 €", "👩", "a\nb\tc"):
        assert visible(text) == text
    assert visible("a\nb", "") == r"a\u000ab"


def test_tables_and_messages() -> None:
    shown = aligned([QID, "n"], [[VALUES[0], "1"], [f"two{chr(10)}lines", "2"]])
    assert not hides(shown)
    assert len(shown.splitlines()) == 3
    assert r"jo\u2066b" in str(InvalidInput("unknown column", got=SENSITIVE))


RESULTS = {
    "table": lambda table: table,
    "summary": lambda table: table.summary(),
    "assessment": lambda table: cr.assess(table, cr.Geometric(epsilon=1.0), measures="local"),
    "explanation": lambda table: cr.explain(table, cr.Geometric(epsilon=1.0)),
    "curve": lambda table: cr.curve(table, "geometric", epsilon=[1.0], measures="local"),
    "choice": lambda table: cr.choose(table, "geometric", max_risk=0.9, max_epsilon=2.0),
    "release": lambda table: cr.release(table, cr.Geometric(epsilon=1.0), observed_levels=True),
    "sequence": lambda table: cr.assess_sequence(table, [cr.Step(cr.Geometric(epsilon=1.0), SENSITIVE)]),
}


@pytest.mark.parametrize("kind", RESULTS)
def test_results_print_what_is_hidden(table: cr.FrequencyTable, kind: str) -> None:
    shown = str(RESULTS[kind](table))
    assert not hides(shown)
    assert r"\u2066" in shown


@pytest.mark.slow
def test_reports_show_what_is_hidden(table: cr.FrequencyTable) -> None:
    page = cr.report(table, epsilon=1.0, title=f"Review{TURN}").to_html()
    assert not hides(page)
    assert all(words in page for words in (r"to\u202ewn", r"jo\u2066b", r"Bo\u001b[2Jnn", r"Review\u202e"))


@pytest.mark.parametrize("draw", [lambda t: t.plot(), lambda t: cr.curve(t, epsilon=[0.1, 1.0]).plot()])
def test_pictures_show_what_is_hidden(table: cr.FrequencyTable, draw: Any, tmp_path: Path) -> None:
    from matplotlib import rc_context

    with rc_context({"svg.fonttype": "none"}):
        figure = draw(table)
        save(figure, tmp_path / "a.svg")
    words = [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]
    words += [label.get_text() for axes in figure.axes for label in axes.get_yticklabels() + axes.get_xticklabels()]
    assert not [each for each in words if hides(each)]
    assert any(r"\u2066" in each for each in words)


def test_terminals_show_what_is_hidden(
    frame: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    frame.to_csv("people.csv", index=False)
    columns = ("people.csv", "--qid", QID, "--sensitive", SENSITIVE)
    assert main(["inspect", *columns]) == 0
    assert main(["explain", *columns, "--epsilon", "1"]) == 0
    assert main(["inspect", "people.csv", "--qid", f"no{TURN}ne", "--sensitive", SENSITIVE]) == 2
    assert main(["inspect", f"no{TURN}where.csv", "--qid", "a", "--sensitive", "b"]) == 2
    said = capsys.readouterr()
    assert not hides(said.out + said.err)
    assert main(["explain", *columns, "--epsilon", "1", "--json"]) == 0
    printed = capsys.readouterr().out
    assert not hides(printed)
    assert json.loads(printed)["sensitive"] == SENSITIVE, "in JSON the escapes are the characters themselves"


def test_releases_keep_every_character(table: cr.FrequencyTable, tmp_path: Path) -> None:
    released = cr.release(table, cr.Geometric(epsilon=1.0), observed_levels=True, clamp=False)
    path = released.save(tmp_path / "a.parquet")
    again = pd.read_parquet(path)
    assert list(again.columns[:2]) == [QID, SENSITIVE]
    assert set(again[QID]) == set(VALUES)


def test_the_page_has_the_same_rule() -> None:
    script = (Path(cr.__file__).parent / "web" / "page" / "elements.js").read_text(encoding="utf-8")
    assert re.search(r"\\p\{Cc\}\\p\{Cf\}\\p\{Cs\}\\p\{Zl\}\\p\{Zp\}", script)
    for path in (Path(cr.__file__).parent / "web" / "page").glob("*.js"):
        text = path.read_text(encoding="utf-8")
        assert "innerHTML" not in text
        assert not re.search(r"textContent = (sentence|.*\.(sentence|name)\b)", text), path.name
