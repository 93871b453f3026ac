"""The finished report: one HTML file that needs nothing else, and the same as PDF."""

from __future__ import annotations

import contextlib
import io
import os
from dataclasses import dataclass, field
from importlib import import_module, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellrisk.decide.policies import Policies
from cellrisk.errors import InvalidInput, visible
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.sweep import Setting
from cellrisk.show.reporting.blocks import Page
from cellrisk.system.results import Result
from cellrisk.system.text import paragraphs
from cellrisk.system.writing import check_writable, write_whole

if TYPE_CHECKING:
    from jinja2 import Environment

ENDINGS = (".html", ".htm", ".pdf")
PDF_FIX = (
    "install it with pip install 'cellrisk[pdf]', and Pango with apt install libpango-1.0-0 libpangoft2-1.0-0 "
    "libharfbuzz-subset0 (on Debian), or save the report as .html and print that"
)


@dataclass(frozen=True, repr=False)
class Report(Result):
    """A disclosure review as a document. The same inputs give the same bytes.

    A report for a board lists keys of cells at risk, so that a pickled one does not contain the document.
    """

    html: str
    title: str
    decision: str
    """What is to be decided, as a sentence."""
    verdict: str
    """recommended, kept, broken, none (no epsilon keeps the limits) or open (no limit was set)."""
    sentence: str
    """What a curator can repeat; what anybody can where the report is for the public."""
    setting: Setting
    epsilon: float | None
    """The one to be approved; None where none will do."""
    public: bool
    """Whether figures computed from the raw data are left out."""
    policies: Policies = field(default_factory=Policies)
    """The policies that were obeyed."""

    @property
    def mechanism(self) -> Mechanism | None:
        """The one to be approved; None where no epsilon will do."""
        return None if self.epsilon is None else self.setting.at(self.epsilon)

    @property
    def headline(self) -> str:
        """What the report says in one sentence."""
        return self.sentence

    def without_keys(self) -> dict[str, Any]:
        return {} if self.public else {"html": ""}

    def to_html(self) -> str:
        if not self.html:
            raise InvalidInput("the document was left behind when this report was pickled", fix="make the report again")
        return self.html

    def to_dict(self) -> dict[str, Any]:
        """What ``cellrisk report --json`` prints."""
        setting = self.setting
        return {
            "title": self.title,
            "decision": self.decision,
            "verdict": self.verdict,
            "headline": self.headline,
            "epsilon": self.epsilon,
            "mechanism": setting.name,
            "delta": setting.delta,
            "neighbours": setting.neighbours,
            "threshold": setting.threshold,
            "public": self.public,
            "policy": self.policies.to_dict(),
        }

    def to_pdf(self) -> bytes:
        """The same document on pages of A4."""
        weasyprint = _load_weasyprint()
        fetcher = weasyprint.urls.URLFetcher(allowed_protocols=("data",))
        document: bytes = weasyprint.HTML(string=self.to_html(), url_fetcher=fetcher).write_pdf(pdf_tags=True)
        return document

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the document as its ending says, .html or .pdf, whole or not at all."""
        target = check_report_path(path)
        content = self.to_pdf() if target.suffix.lower() == ".pdf" else self.to_html()
        return write_whole(target, content, public=self.public)

    def _numbers(self) -> list[dict[str, Any]]:
        """What is decided, one thing a row."""
        return [{"what": name, "value": value} for name, value in self.to_dict().items() if name != "policy"]

    def _paragraphs(self) -> list[str]:
        return []

    def __str__(self) -> str:
        return paragraphs([self.title, self.decision, self.headline])


def check_report_path(path: str | os.PathLike[str]) -> Path:
    """Refuses a path that cannot be written, or a PDF without WeasyPrint, before any long work begins."""
    target = Path(path)
    ending = target.suffix.lower()
    if ending not in ENDINGS:
        raise InvalidInput(
            "the ending of the path names no format of a report",
            got=repr(target.suffix) if target.suffix else "a path without an ending",
            allowed=", ".join(ENDINGS),
            fix="for example report.html",
        )
    check_writable(target)
    if ending == ".pdf":
        _load_weasyprint()
    return target


def render(page: Page) -> str:
    """The page as one HTML document, with its style inside."""
    from markupsafe import Markup

    files = resources.files(__package__)
    template, style = (files.joinpath(name).read_text("utf-8") for name in ("page.html.j2", "style.css"))
    return make_environment().from_string(template).render(page=page, style=Markup(style), as_is=Markup)


def make_environment() -> Environment:
    """The settings of Jinja for documents: every text is escaped, and its invisible characters are made visible."""
    from jinja2 import Environment, StrictUndefined

    return Environment(
        autoescape=True,
        finalize=lambda value: visible(value) if type(value) is str else value,  # and not what is markup already
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _load_weasyprint() -> Any:
    """WeasyPrint, or a refusal that says what is missing; what it would print about that is kept quiet."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return import_module("weasyprint")
    except ImportError:
        raise InvalidInput("a PDF needs WeasyPrint, which is not installed", fix=PDF_FIX) from None
    except OSError:
        raise InvalidInput("a PDF needs Pango, a library that WeasyPrint did not find", fix=PDF_FIX) from None
