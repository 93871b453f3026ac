"""The answer of `release`: counts that may be published, and what has to be said with them."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from cellrisk.counts.unit import Unit
from cellrisk.decide.policies import Policies
from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.noise.mechanisms import DiscreteGaussian, Mechanism, mechanism
from cellrisk.noise.precision import SHARE, find_precision
from cellrisk.publish.releasing.files import (
    check_format,
    check_free,
    decode,
    read_content,
    read_description,
    sidecar_of,
    write_files,
)
from cellrisk.publish.releasing.measurement import Measurement
from cellrisk.publish.releasing.published_totals import COUNT, PublishedTotals
from cellrisk.risk.ceilings import Ceiling, ceiling
from cellrisk.system.checks import read_texts, require_kind, require_whole_number
from cellrisk.system.choices import MissingRule, OutsideRule, list_words, require_word
from cellrisk.system.results import Result, find_words
from cellrisk.system.spreadsheets import starts_formula, write_frame
from cellrisk.system.version import __version__

if TYPE_CHECKING:
    import pandas as pd

    from cellrisk.publish.releasing.domain import ReleasedDomain

LONGEST_EXCEPTION = 1_000
"""Characters of a sentence on what the guarantee of a loaded release does not cover."""


@dataclass(frozen=True, eq=False, repr=False)
class Release(Result):
    """Counts with noise, made by `release`. They and everything printed with them may be published.

    ``save`` writes them with a description beside them, and ``load`` reads both.
    """

    wording: ClassVar[str] = "release"

    mechanism: Mechanism
    measurement: Measurement
    quasi_identifiers: tuple[str, ...]
    sensitive: str
    frame: pd.DataFrame
    """One row a count: the labels of the quasi-identifiers and of the sensitive attribute, and the count."""
    labels: dict[str, tuple[str, ...]]
    """The labels of each column that the domain is made of."""
    domain_size: int
    """Counts that got noise."""
    excluded: int
    """Combinations that were said not to occur and are left out."""
    clamp: bool
    dense: bool
    """Whether every count of the domain is listed; else those that are not listed are zero."""
    observed_levels: tuple[str, ...] = ()
    """Columns whose labels are those that occur, which the guarantee does not cover."""
    may_be_missing: tuple[str, ...] = ()
    missing: str = "category"
    """What became of missing values: "category", "drop" or "error"."""
    outside: str = "error"
    """What became of records outside the declared labels: "drop" or "error"."""
    disclosures: tuple[str, ...] = ()
    """What else was taken from the raw data, a sentence each."""
    parents: PublishedTotals | None = None
    """The published counts that these were made consistent with."""
    spreadsheet_safe: bool = False
    """Whether a CSV file has an apostrophe before texts that a spreadsheet would take for formulas."""
    policies: Policies = field(default_factory=Policies)
    description: Mapping[str, Any] | None = field(default=None, repr=False)
    """What the file says of itself, if the release was loaded: it is repeated as it is."""

    @property
    def composed(self) -> Mechanism | None:
        """A mechanism with the guarantee of the counts, that of the parents that they show included; None if that is
        not known."""
        if self.description is not None:
            return _read_guarantee(self.description, self.mechanism)
        return self.mechanism if self.parents is None else self.parents.compose(self.mechanism)

    @property
    def exceptions(self) -> tuple[str, ...]:
        """What the guarantee does not cover, a sentence each."""
        return (*find_words("release").say_observed(self.observed_levels), *self.not_covered)

    @cached_property
    def ceiling(self) -> Ceiling | None:
        """The worst case for one record. It uses no data: the mechanism, and the declared labels; if the labels are
        observed ones, it is that of two. None if the guarantee of the parents is not known, or has a delta with that of
        the counts."""
        made, observed = self.composed, self.sensitive in self.observed_levels
        if made is None or not (made.pure or not self.adjusted):
            return None
        return ceiling(made, labels=2 if observed else max(len(self.labels[self.sensitive]), 2))

    @cached_property
    def statements(self) -> tuple[str, ...]:
        """What a reader of the counts has to know."""
        return tuple(find_words("release").statements(self))

    @cached_property
    def formula_columns(self) -> tuple[str, ...]:
        """Columns with a name, or a label of the domain, that a spreadsheet would take for a formula."""
        return tuple(name for name, labels in self.labels.items() if any(map(starts_formula, (name, *labels))))

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What was taken from the raw data without noise, beside labels and cells that are the observed ones."""
        return tuple(find_words("release").not_covered(self))

    def _numbers(self) -> pd.DataFrame:
        """One row a count."""
        return self.frame.copy()

    def to_dict(self) -> dict[str, Any]:
        """What is saved beside the counts: how they were made, and nothing of the records that is not in the counts."""
        if self.description is not None:
            of_file = ("file", "sha256", "ledger", "set")
            return copy.deepcopy({name: value for name, value in self.description.items() if name not in of_file})
        declared, made, opendp = self.sensitive not in self.observed_levels, self.composed, version("opendp")
        precision, library = find_precision(self.mechanism), f"cellrisk {__version__}, OpenDP {opendp}"
        how: dict[str, Any] = {"clamp": self.clamp, "adjusted": self.adjusted}
        described: dict[str, Any] = {
            "cellrisk": __version__,
            "opendp": opendp,
            "sentence": self.headline,
            "statements": list(self.statements),
            "mechanism": {**self.mechanism.to_dict(), "threshold": self.mechanism.threshold},
            "unit": self.mechanism.unit.to_dict(),
            "guarantee": made and {name: getattr(made, name) for name in ("epsilon", "delta", "neighbours")},
            "noise": {
                "distribution": self.measurement.distribution,
                "scale": self.measurement.scale,
                "privacy_loss": {self.measurement.unit: self.measurement.loss},
                "delta_of_approximation": 0.0,
            },
            "accuracy": {
                "within": precision.within,
                "probability": SHARE,
                "sd": precision.sd,
                "zero_becomes": 0.0 if not self.clamp else None if self.adjusted else precision.at_zero,
            },
            "label": find_words("release").label(self.mechanism, made, self.ceiling, self.exceptions, library, **how),
            "ceiling": self.ceiling
            and {
                "even_two": self.ceiling.even_two,
                "even": self.ceiling.even if declared else None,
                "labels": self.ceiling.labels if declared else None,
                "sentence": find_words("release").say_ceiling(self),
            },
            "quasi_identifiers": list(self.quasi_identifiers),
            "sensitive": self.sensitive,
            "count": str(self.frame.columns[-1]),
            "labels": {name: list(labels) for name, labels in self.labels.items()},
            "domain_size": self.domain_size,
            "excluded": self.excluded,
            "released": len(self.frame),
            "dense": self.dense,
            "clamp": self.clamp,
            "observed_levels": list(self.observed_levels),
            "may_be_missing": list(self.may_be_missing),
            "missing": self.missing,
            "outside": self.outside,
            "not_covered": list(self.not_covered),
            "policy": self.policies.to_dict(),
        }
        if self.parents is not None:
            described["parents"] = self.parents.to_dict()
        if self.spreadsheet_safe:
            described["spreadsheet_safe"] = list(self.formula_columns)
        return described

    @property
    def adjusted(self) -> bool:
        """Whether counts were made to add up to published ones after the noise."""
        return self.parents is not None or (self.description is not None and "parents" in self.description)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Release:
        """Read a release as `save` wrote it, with the description beside it.

        Refused, each with a code: a file without a description ("no-description"), a file that is not, byte for byte,
        the one described ("changed"), and a description that `save` would not write ("description").

        Parameters
        ----------
        path
            The file of the counts, .parquet or .csv.
        """
        file = check_format(path)
        described = read_description(file)
        if described is None:
            what, fix = "there is no description beside the released table", f"keep {sidecar_of(file).name} beside it"
            raise InvalidInput(what, got=file.name, fix=fix, code="no-description")
        content = read_content(file)
        if hashlib.sha256(content).hexdigest() != described.get("sha256"):
            what, got = "the released table is not the one that its description names", f"{file.name}, another sha256"
            raise InvalidInput(what, got=got, fix="restore the file as it was published", code="changed")
        if described.get("spreadsheet_safe") and file.suffix.lower() == ".csv":
            what = "the release was written for spreadsheets: its texts are not those of the table"
            fix = "use one that was written without --spreadsheet-safe, or as .parquet"
            raise InvalidInput(what, got=file.name, fix=fix, code="spreadsheet")
        frame = decode(file, content)
        try:
            return _read_release(frame, described)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            why = f": {error}" if isinstance(error, CellriskError) else ""
            what = f"the description beside {file.name} is not as cellrisk writes it{why}"
            raise InvalidInput(what, code="description") from None

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the counts as ``.parquet`` or ``.csv``, and their description as JSON beside them: both or neither.

        The description names the file's SHA-256, so that a pair can be known to belong together.

        Parameters
        ----------
        path
            Where to; the ending says the format.
        force
            Replaces files that exist.
        """
        target = self.check_place(path, force)
        return write_files(target, *self.files(target), force=force)

    def files(self, target: Path, total: str | None = None) -> tuple[dict[str, bytes], dict[str, str]]:
        """Return what is saved at a place: the content of the file, and its description; each by its name.

        Parameters
        ----------
        target
            Where it is saved.
        total
            What all releases in a ledger cost together, for the label.
        """
        content = self.encode(target.suffix.lower())
        return {target.name: content}, {sidecar_of(target).name: self.describe_file(target.name, content, total)}

    def check_place(self, path: str | os.PathLike[str], force: bool) -> Path:
        """Refuse a place where it cannot be saved, or where it would replace the parents that it adds up to.

        Parameters
        ----------
        path, force
            As in `save`.
        """
        given = self.parents is not None and self.parents.path
        return check_free(path, force, {given: "the parents"} if given else {})

    def describe_file(self, name: str, content: bytes, total: str | None = None, **more: Any) -> str:
        """The description that stands beside a file of that name and content, as JSON.

        Parameters
        ----------
        name, content
            Of the file.
        total
            What all releases in a ledger cost together, for the label; None without a ledger.
        more
            What is added to the description.
        """
        described = {**self.to_dict(), "file": name, "sha256": hashlib.sha256(content).hexdigest(), **more}
        if total is not None and isinstance(described.get("label"), dict):
            described["label"]["total"] = total
        return json.dumps(described, indent=2, ensure_ascii=False) + "\n"

    def encode(self, ending: str) -> bytes:
        """The counts as the content of a file with that ending."""
        if ending == ".csv":
            return write_frame(self.frame, spreadsheet_safe=self.spreadsheet_safe).encode("utf-8")
        buffer = io.BytesIO()
        self.frame.to_parquet(buffer, index=False)
        return buffer.getvalue()


def build_frame(domain: ReleasedDomain, places: Any, counts: Any) -> pd.DataFrame:
    """Labels and counts as a frame; a label that is not declared is in it only where a row has it."""
    import pandas as pd

    columns: dict[str, Any] = {}
    for axis, codes in zip(domain.axes, domain.codes(places), strict=True):
        labels = pd.Categorical.from_codes(codes, categories=list(axis.labels))
        columns[axis.name] = labels if axis.declared else labels.remove_unused_categories()
    name = COUNT
    while name in columns:
        name = f"{name}_"
    return pd.DataFrame({**columns, name: counts})


def _read_release(frame: pd.DataFrame, described: Mapping[str, Any]) -> Release:
    """A release, from its counts and its description; any error means that the description is not ours."""
    made, given = described["mechanism"], ("epsilon", "delta", "neighbours", "threshold")
    named = mechanism(made["name"], **{name: made[name] for name in given if name in made})
    named = named.with_unit(Unit.from_dict(described["unit"]))
    noise, sentences = described["noise"], read_texts("not_covered", described["not_covered"], "sentences")
    columns = [*read_texts("quasi_identifiers", described["quasi_identifiers"], "columns"), described["sensitive"]]
    columns.append(described["count"])
    if [str(column) for column in frame.columns] != columns or len(frame) != described["released"]:
        raise ValueError("the columns or the rows are not those of the file")
    if frame[columns[-1]].dtype == object or frame[columns[-1]].dtype.kind not in "iu":
        frame = frame.assign(**{columns[-1]: [int(text) for text in frame[columns[-1]]]})
    if not all(sentence.isprintable() and len(sentence) <= LONGEST_EXCEPTION for sentence in sentences):
        raise ValueError("a sentence is too long, or has hidden characters")
    read_texts("statements", described["statements"], "sentences")
    require_kind("sentence", described["sentence"], str)
    _read_guarantee(described, named)
    for rule, words in (("missing", MissingRule), ("outside", OutsideRule)):
        require_word(rule, described[rule], list_words(words))
    for flag in ("clamp", "dense"):
        require_kind(flag, described[flag], bool)
    if len(frame) != described["domain_size"] if described["dense"] else not described["clamp"]:
        raise ValueError("a dense release lists every count, and one with negative counts is dense")
    return Release(
        mechanism=named,
        measurement=Measurement(
            isinstance(named, DiscreteGaussian), float(noise["scale"]), float(*noise["privacy_loss"].values())
        ),
        quasi_identifiers=tuple(columns[:-2]),
        sensitive=columns[-2],
        frame=frame,
        labels={name: read_texts("labels", labels, "labels") for name, labels in described["labels"].items()},
        domain_size=require_whole_number("domain_size", described["domain_size"], 0),
        excluded=require_whole_number("excluded", described["excluded"], 0),
        clamp=described["clamp"],
        dense=described["dense"],
        observed_levels=read_texts("observed_levels", described["observed_levels"], "columns"),
        may_be_missing=read_texts("may_be_missing", described["may_be_missing"], "columns"),
        missing=described["missing"],
        outside=described["outside"],
        description=described,
    )


def _read_guarantee(described: Mapping[str, Any], of: Mechanism) -> Mechanism | None:
    """A mechanism with the guarantee that a description states, which is that ``of`` the noise or weaker; None if none
    is stated."""
    loss = described["guarantee"]
    if loss is None:
        return None
    made = mechanism("discrete-gaussian" if loss["delta"] else "geometric", **loss).with_unit(of.unit)
    if not loss["neighbours"] == made.neighbours == of.neighbours or made.epsilon < of.epsilon:
        raise ValueError("the guarantee is not that of the mechanism")
    return of if (made.epsilon, made.delta) == (of.epsilon, of.delta) else made
