"""Makes docs/pictures/risk.svg, the picture of the README and of the documentation's first page.

    .venv/bin/python tools/make_picture.py

It is what `cellrisk curve --plot` draws of UCI Adult with six quasi-identifiers and geometric noise, with a title and a
description for readers who see no picture. The same version of matplotlib gives the same bytes.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from xml.sax.saxutils import escape

import cellrisk as cr
from cellrisk.counts.datasets import adult_as_published
from cellrisk.show.pictures import to_svg
from cellrisk.show.pictures.attackers import POINTS
from cellrisk.show.wording.attackers import own_share, share
from cellrisk.system.atomic import write_whole

TARGET = Path(__file__).resolve().parent.parent / "docs" / "pictures" / "risk.svg"
QIDS = ["age", "relationship", "education", "race", "sex", "hours-per-week"]
BINS = {"age": 5, "hours-per-week": 10}
TITLE = "Share of people revealed because of their own record, and inferred, along epsilon"


def compute_curve() -> cr.RiskCurve:
    """Return the curve of UCI Adult."""
    table = cr.tabulate(adult_as_published(), quasi_identifiers=QIDS, sensitive="income", bins=BINS)
    return cr.curve(table, "geometric")


def describe(curve: cr.RiskCurve) -> str:
    """Return the numbers of the picture in words."""
    figures = curve.trace_attacks("income", curve.settings[0], (POINTS[0], 0.1, 1.0, POINTS[-1]))
    parts = []
    for row in figures:
        at = "without noise" if row.mechanism is None else f"at epsilon {row.mechanism.epsilon:g}"
        parts.append(f"{at} {own_share(row.own, row.people)} and {share((row.inferred or 0.0) / row.people)}")
    return f"Revealed because of their own record, and inferred with 95% certainty: {'; '.join(parts)}."


def make_svg(curve: cr.RiskCurve) -> str:
    """Return the file: the drawing, with a title and a description inside."""
    element = to_svg(curve.plot())
    start = element.index(">") + 1
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'{element[: start - 1]} role="img">\n <title>{escape(TITLE)}</title>\n'
        f" <desc>{escape(describe(curve))}</desc>{element[start:]}"
    )


def main() -> None:
    """Compute, draw, write."""
    parser = argparse.ArgumentParser(description="Make the picture of the README.")
    parser.add_argument("--output", type=Path, default=TARGET, help="default: docs/pictures/risk.svg")
    options = parser.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    text = make_svg(compute_curve())
    write_whole(options.output, text)
    print(f"{options.output.name}: {len(text.encode()):,} bytes")


if __name__ == "__main__":
    main()
