"""The files of the page: each is served under its name and nothing else is; no module goes in circles."""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from importlib import resources
from typing import Any

import pytest

from cellrisk.web.routes import STATIC

PAGE = {
    entry.name: entry.read_text("utf-8")
    for entry in resources.files("cellrisk.web").joinpath("page").iterdir()
    if entry.name.endswith((".css", ".js"))
}
MODULES = {name: text for name, text in PAGE.items() if name.endswith(".js") and name != "first.js"}


def imports(text: str) -> dict[str, set[str]]:
    """What a module imports, by the file it is imported from."""
    found = re.findall(r'^import \{ ([\w, ]+) \} from "\./([\w.]+)";$', text, re.MULTILINE)
    assert len(found) == len(re.findall(r"\bimport\b", text))  # there is no other way to import
    return {name: set(names.split(", ")) for names, name in found}


def exports(text: str) -> set[str]:
    return set(re.findall(r"^export (?:async function|function|const) (\w+)", text, re.MULTILINE))


def test_the_names_are_those_of_the_files() -> None:
    assert set(STATIC) == set(PAGE)


@pytest.mark.parametrize("name", sorted(PAGE))
def test_each_is_served_as_it_is(client: Any, name: str) -> None:
    answer = client.get(f"/static/{name}")
    kind = "text/css" if name.endswith(".css") else "text/javascript"
    assert (answer.status_code, answer.text) == (200, PAGE[name])
    assert answer.headers["content-type"] == f"{kind}; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"


def test_scripts_run_in_their_order(client: Any) -> None:
    """The first at once; a module waits for the page."""
    assert re.findall(r"<script ([^>]*)>", client.get("/").text) == [
        'src="/static/first.js"',
        'src="/static/app.js" type="module"',
    ]


@pytest.mark.parametrize("name", sorted(MODULES))
def test_what_is_imported_is_there_and_used(name: str) -> None:
    text = MODULES[name]
    for source, names in imports(text).items():
        assert names <= exports(MODULES[source])
        for each in names:
            assert len(re.findall(rf"\b{each}\b", text)) > 1


def test_what_is_exported_is_imported_somewhere() -> None:
    known = [pair for text in MODULES.values() for pair in imports(text).items()]
    imported = {(source, each) for source, names in known for each in names}
    assert {(name, each) for name, text in MODULES.items() for each in exports(text)} == imported


def test_modules_do_not_go_in_circles() -> None:
    known = {name: set(imports(text)) for name, text in MODULES.items()}
    assert set(TopologicalSorter(known).static_order()) == set(MODULES)
    assert set(MODULES) - set().union(*known.values()) == {"app.js", "sets.js"}  # a page starts with each
    with pytest.raises(CycleError):
        TopologicalSorter({**known, "elements.js": {"app.js"}}).prepare()
