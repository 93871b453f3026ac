"""The finished report: one HTML file that needs nothing else, and the same as PDF."""

from __future__ import annotations

import contextlib
import html
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellrisk.decide.policies import Policies
from cellrisk.errors import InvalidInput, visible
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.noise.perturbations import Perturbation
from cellrisk.system.atomic import check_ending, write_whole
from cellrisk.system.checks import require_path
from cellrisk.system.formatting import CURATOR_NOTE, paragraphs
from cellrisk.system.progress import Progress
from cellrisk.system.results import Result
from cellrisk.system.templates import fill_apart, make_environment, to_plain

if TYPE_CHECKING:
    from jinja2 import Environment

    from cellrisk.repeat.together.sets import SetTable

LARGEST_TEMPLATE = 1_000_000
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
    setting: Mechanism | None = None
    """None where the table is published with a perturbation, and for a set of tables."""
    epsilon: float | None = None
    """The one to be approved, of a set what all tables cost; None where none will do."""
    public: bool = False
    """Whether figures computed from the raw data are left out."""
    policies: Policies = field(default_factory=Policies)
    perturbation: Perturbation | None = None
    broken: tuple[str, ...] = ()
    """The limits that a perturbation or a set breaks, or that cannot be judged for it."""
    record: str = ""
    """A record for the registry of deployments, as YAML; empty for a perturbation and for a set."""
    tables: tuple[SetTable, ...] = ()
    """Those of a set; empty where the report is on one table."""

    @property
    def mechanism(self) -> Mechanism | None:
        """The one to be approved; None where no epsilon will do, for a perturbation and for a set."""
        return None if self.epsilon is None or self.setting is None else self.setting.with_epsilon(self.epsilon)

    @property
    def headline(self) -> str:
        return self.sentence

    def without_keys(self) -> dict[str, Any]:
        return {} if self.public else {"html": ""}

    def to_html(self) -> str:
        if not self.html:
            fix = "make the report again"
            raise InvalidInput("the document was left behind when this report was pickled", fix=fix, code="no-document")
        return self.html

    def to_dict(self) -> dict[str, Any]:
        """Return what ``cellrisk report --json`` prints."""
        how: dict[str, Any] = {"mechanism": None}
        if self.setting is not None:
            how = {"mechanism": self.setting.name, "delta": self.setting.delta, "neighbours": self.setting.neighbours}
            how |= {"threshold": self.setting.threshold, "unit": self.setting.unit.to_dict()}
        if self.perturbation is not None:
            how["perturbation"] = self.perturbation.to_dict()
        if self.tables:
            how["tables"] = [table.to_dict() for table in self.tables]
        if self.setting is None and not self.public:
            how["broken"] = list(self.broken)
        return {
            "title": self.title,
            "decision": self.decision,
            "verdict": self.verdict,
            "headline": self.headline,
            "epsilon": self.epsilon,
            **how,
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
        """Write the document as its ending says, .html or .pdf, whole or not at all."""
        target = check_report_path(path)
        content = self.to_pdf() if target.suffix.lower() == ".pdf" else self.to_html()
        return write_whole(target, content, public=self.public)

    def save_record(self, path: str | os.PathLike[str]) -> Path:
        """Write the record for the registry of deployments, whole or not at all."""
        if not self.record:
            what = "there is no record for the registry: it is of one table with a guarantee"
            raise InvalidInput(what, fix="report one table, with a mechanism", code="no-record")
        return write_whole(check_record_path(path), self.record, public=self.public)

    def _numbers(self) -> list[dict[str, Any]]:
        """Return what is decided, one thing a row."""
        return [{"what": name, "value": value} for name, value in self.to_dict().items() if name != "policy"]

    @property
    def details(self) -> str:
        return paragraphs([self.title, self.decision, self.headline])

    def _repr_html_(self) -> str:
        """The document itself, in a frame of its own in which nothing runs; what a pickle left is shown as a table."""
        if not self.html:
            return super()._repr_html_()
        kept = "" if self.public else f" {CURATOR_NOTE} A notebook keeps what it shows."
        return (
            f"<p>{html.escape(visible(self.headline + kept))}</p>\n"
            f'<iframe sandbox="" srcdoc="{html.escape(self.html)}" title="{html.escape(visible(self.title))}" '
            'width="100%" height="640" style="border:1px solid #8888"></iframe>'
        )

    def __str__(self) -> str:
        return self.details


def read_template(path: str | os.PathLike[str] | None) -> str | None:
    """Return a house's own template, read before any long work begins."""
    if path is None:
        return None
    require_path("template", path)
    try:
        with open(path, "rb") as stream:
            content = stream.read(LARGEST_TEMPLATE + 1)
    except OSError as error:
        what = f"the template cannot be read: {error.strerror}"
        raise InvalidInput(what, got=os.fspath(path), code="unreadable") from None
    if len(content) > LARGEST_TEMPLATE:
        allowed = f"up to {LARGEST_TEMPLATE:,} bytes"
        raise InvalidInput("the template is too large", got=os.fspath(path), allowed=allowed, code="too-large")
    return content.decode("utf-8", "replace")


def make_report(
    name: str, data: Mapping[str, Any], template: str | None, progress: Progress | None, more: str = "", **known: Any
) -> Report:
    """Return the document that a template makes of its data; ``more`` follows the verdict in the headline."""
    data = to_plain(data)
    verdict = data["verdict"]
    made = Report(
        html=render(name, data, template),
        title=data["title"],
        decision=data["decision"],
        verdict=verdict["kind"],
        sentence=" ".join(filter(None, [f"{verdict['title']}.", *verdict["texts"], more])),
        **known,
    )
    if progress is not None:
        progress(1.0)
    return made


def check_report_path(path: str | os.PathLike[str]) -> Path:
    """Refuse a path that cannot be written, or a PDF without WeasyPrint, before any long work begins."""
    target = check_ending(path, ENDINGS, "format of a report", "report.html")
    if target.suffix.lower() == ".pdf":
        _load_weasyprint()
    return target


def check_record_path(path: str | os.PathLike[str]) -> Path:
    """Refuse a path that a record for the registry cannot be written to."""
    return check_ending(path, (".yaml", ".yml"), "format of a record for the registry", "record.yaml")


def render(name: str, data: Mapping[str, Any], template: str | None = None) -> str:
    """The HTML document that a template of the package makes of data; through a house's own template if one is given.

    A house's own template may extend or include those of the package.
    """
    files, environment = _load_templates()
    return environment.get_template(name).render(data) if template is None else fill_apart(template, files, data)


def read_decision(document: str, public: bool, kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is asked, and the answer with its kind, title and texts, as decision.txt.j2 words them."""
    plain = {name: value.replace("\n", " ") if isinstance(value, str) else value for name, value in data.items()}
    environment = _load_templates()[1].overlay(finalize=None)  # texts stay as they are; what prints them escapes them
    template = environment.get_template("decision.txt.j2")
    text = template.render({**plain, "document": document, "public": public, "kind": kind})
    decision, title, *texts = filter(None, text.split("\n"))
    return {"decision": decision, "verdict": {"kind": kind, "title": title, "texts": texts}}


@cache
def _load_templates() -> tuple[dict[str, str], Environment]:
    """The package's templates by their names, and an environment that keeps those that it has compiled."""
    folder = resources.files(__package__).joinpath("templates")
    files = {file.name: file.read_text("utf-8") for file in folder.iterdir()}
    return files, make_environment(files)


def _load_weasyprint() -> Any:
    """WeasyPrint, or a refusal that says what is missing; what it would print about that is kept quiet."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return import_module("weasyprint")
    except ImportError:
        what = "a PDF needs WeasyPrint, which is not installed"
        raise InvalidInput(what, fix=PDF_FIX, code="no-weasyprint") from None
    except OSError:
        what = "a PDF needs Pango, a library that WeasyPrint did not find"
        raise InvalidInput(what, fix=PDF_FIX, code="no-weasyprint") from None
