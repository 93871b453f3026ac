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

from cellrisk.decide.policies import Policies
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.noise.precision import SHARE, find_precision
from cellrisk.publish.releasing.files import check_format, check_free, load, read_guarantee, sidecar_of, write_files
from cellrisk.publish.releasing.published_totals import COUNT, PublishedTotals
from cellrisk.risk.ceilings import Ceiling, ceiling
from cellrisk.system.results import Result, find_words
from cellrisk.system.spreadsheets import starts_formula, write_frame
from cellrisk.system.version import __version__

if TYPE_CHECKING:
    import pandas as pd

    from cellrisk.publish.releasing.domain import CountGrid
    from cellrisk.publish.releasing.measurement import Measurement


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
    """The policies that were obeyed."""
    description: Mapping[str, Any] | None = field(default=None, repr=False)
    """What the file says of itself, if the release was loaded: it is repeated as it is."""

    def __post_init__(self) -> None:
        if list(self.frame.columns[:-1]) != [*self.quasi_identifiers, self.sensitive]:
            raise InvalidInput("a release has a column for each attribute, and the counts")
        if not self.clamp and not self.dense:
            raise InvalidInput("a release that keeps negative counts lists every count")
        if self.parents is not None and not (self.clamp and self.dense):
            raise InvalidInput("a release that is consistent with parents lists every count, none of them negative")
        if self.dense and len(self.frame) != self.domain_size:
            raise InvalidInput("a dense release lists every count", got=f"{len(self.frame):,} of {self.domain_size:,}")

    @property
    def composed(self) -> Mechanism | None:
        """A mechanism with the guarantee of the counts, that of the parents that they show included; None where that is
        not known."""
        if self.description is not None:
            stated = read_guarantee(self.description)
            same = stated and (stated.epsilon, stated.delta) == (self.mechanism.epsilon, self.mechanism.delta)
            return self.mechanism if same else stated
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
        declared, made = self.sensitive not in self.observed_levels, self.composed
        precision = find_precision(self.mechanism)
        described: dict[str, Any] = {
            "cellrisk": __version__,
            "opendp": version("opendp"),
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
            "label": find_words("label").label(
                self.mechanism,
                made,
                self.ceiling,
                self.exceptions,
                f"cellrisk {__version__}, OpenDP {version('opendp')}",
                clamp=self.clamp,
                adjusted=self.adjusted,
            ),
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
        return copy.deepcopy(described)

    @property
    def adjusted(self) -> bool:
        """Whether counts were made to add up to published ones after the noise."""
        return self.parents is not None or (self.description is not None and "parents" in self.description)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Release:
        """Read a release as `save` wrote it, with the description beside it.

        A file that is not, byte for byte, the one that the description names is refused, and so is a description that
        was not written by cellrisk.

        Parameters
        ----------
        path
            The file of the counts, .parquet or .csv.
        """
        return load(path, Release)

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

    def files(self, target: Path) -> tuple[dict[str, bytes], dict[str, str]]:
        """What is saved at a place: the content of the file, and its description; each by its name."""
        content = self.encode(target.suffix.lower())
        return {target.name: content}, {sidecar_of(target).name: self.describe_file(target.name, content)}

    def check_place(self, path: str | os.PathLike[str], force: bool) -> Path:
        """Refuse a place where it cannot be saved, or where it would replace the parents that it adds up to.

        Parameters
        ----------
        path, force
            As in `save`.
        """
        path_of_parents = None if self.parents is None else self.parents.path
        inputs = {} if path_of_parents is None else {path_of_parents: "the parents"}
        return check_free(check_format(path), force, inputs)

    def describe_file(self, name: str, content: bytes, **more: Any) -> str:
        """The description that stands beside a file of that name and content, as JSON.

        Parameters
        ----------
        name, content
            Of the file.
        more
            What is added to the description.
        """
        described = {**self.to_dict(), "file": name, "sha256": hashlib.sha256(content).hexdigest(), **more}
        return json.dumps(described, indent=2, ensure_ascii=False) + "\n"

    def encode(self, ending: str) -> bytes:
        """The counts as the content of a file with that ending."""
        if ending == ".csv":
            return write_frame(self.frame, spreadsheet_safe=self.spreadsheet_safe).encode("utf-8")
        buffer = io.BytesIO()
        self.frame.to_parquet(buffer, index=False)
        return buffer.getvalue()


def build_frame(grid: CountGrid, places: Any, counts: Any) -> pd.DataFrame:
    """Labels and counts as a frame; a label that is not declared is in it only where a row has it."""
    import pandas as pd

    columns: dict[str, Any] = {}
    for axis, codes in zip(grid.axes, grid.codes(places), strict=True):
        labels = pd.Categorical.from_codes(codes, categories=list(axis.labels))
        columns[axis.name] = labels if axis.declared else labels.remove_unused_categories()
    name = COUNT
    while name in columns:
        name = f"{name}_"
    return pd.DataFrame({**columns, name: counts})
