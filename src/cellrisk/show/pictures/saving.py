"""Figures as files and as text: the same figure gives the same bytes."""

from __future__ import annotations

import hashlib
import io
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from cellrisk.show.pictures.style import house_style
from cellrisk.system.atomic import check_ending, write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENDINGS = (".svg", ".png", ".pdf")
DOTS = 300
"""Dots per inch of a saved PNG."""
WITHOUT_DATES: dict[str, dict[str, None]] = {
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def check_picture_path(path: str | os.PathLike[str]) -> Path:
    """Refuses an ending that names no format, or a place that cannot be written to, before any long work begins."""
    return check_ending(path, ENDINGS, "picture format", "risk.svg")


def save(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Writes a figure in the format of the path's ending: .svg, .png or .pdf, whole or not at all."""
    target = check_picture_path(path)
    return write_whole(target, _render(figure, target.suffix.lower()[1:]))


def to_svg(figure: Figure) -> str:
    """The figure as one SVG element, to be put into a page: no prolog, and names that no other figure uses."""
    text = _render(figure, "svg").decode("utf-8")
    element = text[text.index("<svg") :]
    mark = hashlib.sha256(element.encode("utf-8")).hexdigest()[:8]
    return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>f{mark}-", element)


def _render(figure: Figure, kind: str) -> bytes:
    buffer = io.BytesIO()
    with house_style():
        figure.savefig(buffer, format=kind, dpi=DOTS, metadata=WITHOUT_DATES[kind])
    return buffer.getvalue()
