"""Small pictures for notebooks: plain SVG that is written at once, follows the colours of the page, and has no ids."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from cellrisk.errors import visible

WIDTH, ROW, NAMES, BARS = 560, 20, 220, 220
HEIGHT, LEFT, BOTTOM = 150, 40, 22
STROKES = ("", "6 3", "2 3", "8 3 2 3")
"""Lines are told apart by their dashes, whatever the colours of the page."""


def _escape(text: str) -> str:
    return html.escape(visible(text, ""))


def _wrap(body: str, height: int, words: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="{_escape(words)}" style="max-width:100%;font:12px sans-serif" fill="currentColor">'
        f"{body}</svg>"
    )


def draw_bars(rows: Sequence[tuple[str, float, str]]) -> str:
    """Bars below each other: a name, a share of the whole, and the number as it is to be read.

    >>> draw_bars([("exposed", 0.3, "30%")]).count("<rect")
    2
    """
    parts = []
    for place, (name, share, told) in enumerate(rows):
        top = place * ROW
        long = BARS * min(max(share, 0.0), 1.0)
        full = f'<rect x="{NAMES}" y="{top + 4}" width="{BARS}" height="12" fill-opacity="0.1"/>'
        bar = f'<rect x="{NAMES}" y="{top + 4}" width="{long:.1f}" height="12" fill="#00796b"/>'
        texts = (
            f'<text x="{NAMES - 8}" y="{top + 14}" text-anchor="end">{_escape(name)}</text>'
            f'<text x="{NAMES + BARS + 8}" y="{top + 14}">{_escape(told)}</text>'
        )
        parts.append(full + bar + texts)
    words = "; ".join(f"{name}: {told}" for name, _, told in rows)
    return _wrap("".join(parts), ROW * len(rows) + 4, words)


def draw_lines(epsilons: Sequence[Sequence[float]], shares: Sequence[Sequence[float]], names: Sequence[str]) -> str:
    """Shares along epsilon, which grows by factors to the right; the names stand below.

    >>> draw_lines([[0.1, 1.0]], [[0.2, 0.4]], ["income"]).count("<polyline")
    1
    """
    low, high = min(map(min, epsilons)), max(map(max, epsilons))
    most = max(1e-9, *map(max, shares))
    wide, tall = WIDTH - LEFT - 10, HEIGHT - BOTTOM - 8
    length = math.log(high / low) or 1.0

    def place(epsilon: float, share: float) -> str:
        return f"{LEFT + wide * math.log(epsilon / low) / length:.1f},{8 + tall * (1 - share / most):.1f}"

    parts = [
        f'<path d="M{LEFT} 8V{8 + tall}H{LEFT + wide}" fill="none" stroke="currentColor" stroke-opacity="0.4"/>',
        f'<text x="{LEFT - 4}" y="14" text-anchor="end">{100 * most:.0f}%</text>',
        f'<text x="{LEFT - 4}" y="{8 + tall}" text-anchor="end">0</text>',
        f'<text x="{LEFT}" y="{HEIGHT - 6}">epsilon {low:.3g}</text>',
        f'<text x="{LEFT + wide}" y="{HEIGHT - 6}" text-anchor="end">{high:.3g}</text>',
    ]
    for number, (along, risks, name) in enumerate(zip(epsilons, shares, names, strict=True)):
        points = " ".join(place(epsilon, share) for epsilon, share in zip(along, risks, strict=True))
        dashes = f' stroke-dasharray="{STROKES[number % len(STROKES)]}"' if STROKES[number % len(STROKES)] else ""
        parts.append(f'<polyline points="{points}" fill="none" stroke="#00796b" stroke-width="2"{dashes}/>')
        top = HEIGHT + 14 + number * ROW
        parts.append(
            f'<path d="M{LEFT} {top - 4}h30" stroke="#00796b" stroke-width="2"{dashes}/>'
            f'<text x="{LEFT + 38}" y="{top}">{_escape(name)}</text>'
        )
    return _wrap("".join(parts), HEIGHT + ROW * len(names) + 4, f"Risk along epsilon: {'; '.join(names)}")
