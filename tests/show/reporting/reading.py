"""Reports read back: a parser of the page, and the people and tables that reports are made of."""

from __future__ import annotations

import tempfile
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd

import cellrisk as cr
from cellrisk.errors import InvalidInput
from cellrisk.show.reporting import check_report_path, document

SOURCE = Path(document.__file__).parents[2]
TOWNS = ["Quimby", "Zarnath", "Wexcombe", "Uxley", "Yarrowby", "Jexton", "Kvistad", "Ozzano"]
TRADES, AGES = ["fletcher", "cooper", "chandler"], ["younger", "middling", "older"]
LEVELS = {"town": TOWNS, "age": AGES, "trade": TRADES}
SECTIONS = (
    "1. Decision asked for",
    "Sign-off",
    "2. Risk before, after and by chance",
    "3. The epsilon and two alternatives",
    "4. Risk along epsilon",
    "5. Usefulness of what is published",
    "6. Sizes of the groups",
    "7. Who is at risk, and what would help",
    "8. Assumptions",
    "9. Label of the release",
    "10. Mechanism and versions",
    "11. Where standards and boards find their answers",
    "12. How this report was made",
    "13. Notes for the curator",
)


class Reader(HTMLParser):
    """Reads a page: its words, headings, tables, ids and addresses, and whether every element is closed."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.counted: Counter[str] = Counter()
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.headings: list[str] = []
        self.labels: list[str] = []
        self.words: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._note(tag, attributes)
        if tag != "meta":
            self.open.append(tag)
        if tag in ("h1", "h2"):
            self.headings.append("")
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._note(tag, attributes)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            return
        self.words.append(data)
        if {"h1", "h2"} & set(self.open):
            self.headings[-1] += data
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data

    def _note(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.counted[tag] += 1
        for name, value in attributes:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "xlink:href", "src", "srcset", "data", "action", "poster"):
                self.addresses.append(value or "")
            if name == "aria-label":
                self.labels.append(value or "")

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def people(seed: int, records: int = 250) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "town": generator.choice(TOWNS, records, p=[0.3, 0.2, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05]),
            "age": generator.choice(AGES, records),
            "trade": generator.choice(TRADES, records, p=[0.9, 0.08, 0.02]),
        }
    )


def tabulated(seed: int = 3, records: int = 250) -> cr.FrequencyTable:
    return cr.tabulate(people(seed, records), ["town", "age"], "trade", levels=LEVELS)


def down(epsilon: float | None) -> float:
    """To five digits, not above."""
    assert epsilon is not None
    digits = 4 - int(np.floor(np.log10(epsilon)))
    return float(f"{np.floor(epsilon * 10.0**digits) / 10.0**digits:.5g}")


def pdfs() -> bool:
    """Whether WeasyPrint and its libraries are there."""
    try:
        check_report_path(Path(tempfile.gettempdir()) / "report.pdf")
    except InvalidInput as refusal:
        return "WeasyPrint" not in str(refusal)
    return True
