"""Makes the notebooks of examples/notebooks from the pages of docs/notebooks, which the tests run as all pages.

    .venv/bin/python tools/notebooks.py            writes the notebooks
    .venv/bin/python tools/notebooks.py --check    says which are stale

A notebook has the words and the code of its page, and no outputs. Where a page ends its code with ``print(name)``, or
with the ``headline`` or the ``decision`` of a name, the notebook ends with the name: it shows the answer with its
picture and its table.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "tools"))

from pages import read_blocks  # noqa: E402

PAGES, NOTEBOOKS = REPOSITORY / "docs" / "notebooks", REPOSITORY / "examples" / "notebooks"
SHOWN = re.compile(r"^print\((\w+(?:\.summary\(\))?)(?:\.headline|\.decision)?\)\Z", flags=re.MULTILINE)


def make_notebook(page: str) -> str:
    """The notebook of a page, as text."""
    cells: list[dict[str, Any]] = []
    lines, last = page.splitlines(), 0
    for block in read_blocks(page):
        _add(cells, "markdown", "\n".join(lines[last : block.first - 1]))
        if block.language == "python":
            code = block.body.strip()
            _add(cells, "code", SHOWN.sub(r"\1", code))
        last = block.end + 1
    _add(cells, "markdown", "\n".join(lines[last:]))
    document = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _add(cells: list[dict[str, Any]], kind: str, text: str) -> None:
    """One more cell, unless it would be empty."""
    if text.strip():
        code: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == "code" else {}
        source = text.strip().splitlines(keepends=True)
        cells.append({"cell_type": kind, "id": f"cell-{len(cells) + 1}", "metadata": {}, **code, "source": source})


def main(arguments: list[str]) -> int:
    """Writes the notebooks, or says which are stale; returns the exit code."""
    stale = []
    for page in sorted(PAGES.glob("*.md")):
        target, made = NOTEBOOKS / f"{page.stem}.ipynb", make_notebook(page.read_text(encoding="utf-8"))
        if not target.exists() or target.read_text(encoding="utf-8") != made:
            stale.append(target.name)
            if "--check" not in arguments:
                target.write_text(made, encoding="utf-8")
    print("\n".join(f"stale: {name}" if "--check" in arguments else f"written: {name}" for name in stale) or "current")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
