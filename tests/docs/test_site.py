"""The documentation site, built once: every link leads somewhere, nothing comes from elsewhere, nothing is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from mkdocs.exceptions import PluginError
from tools.site_hooks import describe_commands, on_page_content, to_markdown

import cellrisk as cr
from cellrisk.cli.program import PROGRAM
from tests.docs.conftest import REPOSITORY

DOCS = REPOSITORY / "docs"
RESOURCES = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}


@dataclass
class Document(HTMLParser):
    """What a built page has: identifiers, links, resources, pictures and the text outside of code."""

    path: Path
    names: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    resources: list[str] = field(default_factory=list)
    pictures: list[dict[str, str | None]] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    text: str = ""
    inside: int = 0

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        self.tags.append(tag)
        self.names.update(value for name in ("id", "name") if (value := found.get(name)))
        if tag == "a" and found.get("href"):
            self.links.append(str(found["href"]))
        if tag in RESOURCES and found.get(RESOURCES[tag]) and found.get("rel") not in ("next", "prev", "canonical"):
            self.resources.append(str(found[RESOURCES[tag]]))
        if tag == "img":
            self.pictures.append(found)
        self.inside += tag in ("code", "script", "style")

    def handle_endtag(self, tag: str) -> None:
        self.inside -= tag in ("code", "script", "style")

    def handle_data(self, data: str) -> None:
        if not self.inside:
            self.text += data


@dataclass(frozen=True)
class Site:
    """The built site."""

    folder: Path
    documents: dict[Path, Document]

    def __getitem__(self, name: str) -> Document:
        return self.documents[self.folder / name]


@pytest.fixture(scope="module")
def site(built: Path) -> Site:
    return Site(built, {path: Document(path) for path in sorted(built.rglob("*.html"))})


def outside(address: str) -> bool:
    return bool(urlsplit(address).scheme or urlsplit(address).netloc)


def broken(site: Site) -> Iterator[str]:
    for path, document in site.documents.items():
        for link in document.links:
            if outside(link) or path.name == "404.html":  # whose links begin at the root of a server
                continue
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            there = site.documents[target].names if target in site.documents else set()
            if not target.is_file() or (parts.fragment and unquote(parts.fragment) not in there):
                yield f"{path.name}: {link}"


@pytest.mark.slow
def test_links_and_anchors_lead_somewhere(site: Site) -> None:
    assert sum(len(document.links) for document in site.documents.values()) > 500
    assert list(broken(site)) == []


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere(site: Site) -> None:
    for path, document in site.documents.items():
        assert document.resources
        assert [each for each in document.resources if outside(each)] == [], path.name
        missing = [each for each in document.resources if not (path.parent / urlsplit(each).path).is_file()]
        assert missing == [] or path.name == "404.html", path.name
    for style in site.folder.rglob("*.css"):
        addresses = re.findall(r"url\(\s*['\"]?([^'\")]+)", style.read_text(encoding="utf-8"))
        assert [each for each in addresses if outside(each) and not each.startswith("data:")] == [], style.name


@pytest.mark.slow
def test_pages_that_are_written_are_built_and_reached_from_the_start(site: Site) -> None:
    written = {page.relative_to(DOCS).with_suffix(".html").as_posix() for page in DOCS.rglob("*.md")}
    built = {path.relative_to(site.folder).as_posix() for path in site.documents} - {"404.html"}
    assert built == written
    assert written <= {urlsplit(link).path for link in site["index.html"].links}


@pytest.mark.slow
def test_pictures_are_described(site: Site) -> None:
    pictures = [picture for document in site.documents.values() for picture in document.pictures]
    assert pictures
    assert [picture["src"] for picture in pictures if len(picture.get("alt") or "") < 20] == []


@pytest.mark.slow
def test_every_public_name_is_in_the_reference(site: Site) -> None:
    names = site["reference/python.html"].names
    assert [name for name in cr.__all__ if f"cellrisk.{name}" not in names] == []
    assert "cellrisk.FrequencyTable.cells" in names
    assert ">>>" not in site["reference/python.html"].text  # doctests are in blocks


def commands(command: Any, path: tuple[str, ...] = ("cellrisk",)) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield " ".join(path), command
    for name, each in (inner or {}).items():
        yield from commands(each, (*path, name))


@pytest.mark.slow
def test_every_command_is_in_the_reference(site: Site) -> None:
    found = dict(commands(PROGRAM))
    assert {"cellrisk assess", "cellrisk ledger plan"} <= set(found)
    assert {name.replace(" ", "-") for name in found} <= site["reference/commands.html"].names
    sections = {section.partition("\n")[0]: section for section in describe_commands().split("## ")[1:]}
    assert set(sections) == set(found)
    for name, command in found.items():
        options = [option for each in command.params if each.param_type_name == "option" for option in each.opts]
        assert [option for option in options if option not in sections[name]] == [], name


@pytest.mark.slow
def test_formulas_are_mathematics(site: Site) -> None:
    assert site["maths.html"].tags.count("math") > 50
    for path, document in site.documents.items():
        assert not re.search(r"\\[(\[]|\$\$|\\frac|\\sum", document.text), path.name


@pytest.mark.slow
def test_the_contributors_page_is_the_file_itself(site: Site) -> None:
    shown = " ".join(site["contributing.html"].text.split())
    headings = re.findall(
        r"^## (.*)$", (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert headings
    assert [heading for heading in headings if heading not in shown] == []


def test_docstrings_become_markdown() -> None:
    text = (
        "In a * b_c.\n\nwidth, edge: of\nbins ``a_b``. shape: round.\nnot: this\n\n- a: b\n\n>>> 1 * 2\n2\n\n    a * b"
    )
    assert to_markdown(text, {"width", "edge", "shape"}).split("\n\n") == [
        r"In a \* b\_c.",
        "- `width`, `edge`: of bins ``a_b``.\n- `shape`: round. not: this",
        "- a: b",
        "```pycon\n>>> 1 * 2\n2\n```",
        "    a * b",
    ]
    assert to_markdown("width: of bins") == "width: of bins"


@pytest.mark.slow
def test_rows_of_outputs_are_marked(site: Site) -> None:
    html = (site.folder / "how-to" / "choose.html").read_text(encoding="utf-8")
    assert re.search(r'<span class="row">recommended +[0-9.]+ ', html)
    assert not re.search(r'<span class="row">With geometric', html)


def test_a_formula_that_cannot_be_read_is_named() -> None:
    class Page:
        class file:  # noqa: N801
            src_uri = "maths.md"

    html = '<p><span class="arithmatex">\\(\\frac{1}{\\)</span></p>'
    with pytest.raises(PluginError, match=r"maths\.md"):
        on_page_content(html, page=Page())
