"""The notebooks are their pages, and run in a kernel as a reader would run them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tools.notebooks import NOTEBOOKS, PAGES, make_notebook

from cellrisk.counts.engine import reported

NAMES = ("office", "hospital")


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_its_page(name: str) -> None:
    made = make_notebook((PAGES / f"{name}.md").read_text(encoding="utf-8"))
    assert (NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8") == made, "tools/notebooks.py mends this"
    cells = json.loads(made)["cells"]
    assert sum(cell["cell_type"] == "code" for cell in cells) >= 4
    assert [cell for cell in cells if cell.get("outputs")] == [], "outputs of notebooks are not kept"


def test_there_is_one_for_each_page() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} == {book.stem for book in NOTEBOOKS.glob("*.ipynb")} == {*NAMES}


def test_what_a_page_prints_a_notebook_shows() -> None:
    made = make_notebook("# Title\n\n```python\nx = 1\nprint(x)\n```\n\n```text\n1\n```\n\nAnd so on.\n")
    told = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(made)["cells"]]
    assert told == [("markdown", "# Title"), ("code", "x = 1\nx"), ("markdown", "And so on.")]


def test_an_engine_that_cannot_switch_its_bar_counts_all_the_same() -> None:
    """In a notebook without ipywidgets, DuckDB refuses to switch its own bar, on or off."""

    class Connection:
        def execute(self, statement: str) -> None:
            raise duckdb.InvalidInputException("required package 'ipywidgets' is missing")

    counted = []
    for progress in (None, [].append):
        with reported(Connection(), progress):
            counted.append(progress)
    assert len(counted) == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs(name: str, tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient", reason="make setup installs what runs notebooks")
    nbformat = pytest.importorskip("nbformat", reason="make setup installs what runs notebooks")
    pytest.importorskip("ipykernel", reason="make setup installs what runs notebooks")
    book: Any = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    nbformat.validate(book)
    settings = {"resources": {"metadata": {"path": str(tmp_path)}}, "kernel_name": "python3", "timeout": 300}
    done = nbclient.NotebookClient(book, **settings).execute()
    shown = [output for cell in done.cells if cell.cell_type == "code" for output in cell.outputs]
    assert [output for output in shown if output.output_type == "error"] == []
    assert [output.text for output in shown if output.get("name") == "stderr"] == []
    pages = [output.data["text/html"] for output in shown if "text/html" in output.get("data", {})]
    assert len(pages) >= 2, "answers are shown with their tables"
