"""Options in groups, so that every command offers the same ones: each group is a dataclass that knows its use."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from cellrisk.cli import parsing
from cellrisk.cli.progress import progress_bar
from cellrisk.errors import InvalidInput
from cellrisk.system.writing import inputs_of_one_command, keep_inputs

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable
    from cellrisk.noise.mechanisms import Mechanism

Text = str | None
Texts = list[str] | None
SpreadsheetSafe = Annotated[
    bool, typer.Option("--spreadsheet-safe", help="CSV with an apostrophe before what would be a formula.")
]


def option(help: str, metavar: str, *names: str) -> Any:
    return typer.Option(*names, metavar=metavar, help=help)


@dataclass(frozen=True)
class TableOptions:
    """Where the records are, and what the columns mean."""

    source: Annotated[
        str,
        typer.Argument(metavar="FILE", help="CSV, Parquet or DuckDB file, a glob in quotes, or a database's address."),
    ]
    qid: Annotated[Texts, option("Quasi-identifier; repeat it or separate by commas.", "COLUMN")] = None
    sensitive: Annotated[Texts, option("Sensitive attribute; repeat it or separate by commas.", "COLUMN")] = None
    count: Annotated[Text, option("Column of counts, if rows are cells; none: each row is a person.", "COLUMN")] = None
    bin: Annotated[Texts, option("age=5, or age=0/18/65/120 for edges.", "COLUMN=BINS")] = None
    levels: Annotated[Texts, option("Declared: income='<=50K|>50K'.", "COLUMN=LEVELS")] = None
    missing: Annotated[str, option("Missing values: category, drop or error.", "RULE")] = "category"
    outside: Annotated[
        Text,
        option("Records outside the declared labels: error, or drop (default of release, report --public).", "RULE"),
    ] = None
    engine: Annotated[Text, option("Where counting happens: duckdb or spark.", "NAME")] = None
    table: Annotated[Text, option("Table of a DuckDB file or of a database's address.", "NAME")] = None
    memory_limit: Annotated[
        Text, option("Memory for counting, for example 4GB; past it, it spills to disk.", "SIZE")
    ] = None

    def tabulate(self, outside: str = "error") -> FrequencyTable:
        """The table; ``outside`` is the rule where no other is given."""
        from cellrisk.counts.tabulation import tabulate

        if not self.qid:
            raise InvalidInput(
                "no quasi-identifiers were given", fix="name them: --qid age --qid sex, or --qid age,sex"
            )
        if not self.sensitive:
            raise InvalidInput("no sensitive attribute was given", fix="name it: --sensitive income")
        return tabulate(
            self.source,
            parsing.split_names(self.qid),
            parsing.split_names(self.sensitive),
            bins=parsing.parse_bins(self.bin),
            levels=parsing.parse_levels(self.levels),
            count=self.count,
            missing=self.missing,
            outside=self.outside or outside,
            table=self.table,
            engine=self.engine,
            memory_limit=self.memory_limit,
            progress=progress_bar("counting"),
        )

    @property
    def preparation(self) -> list[str]:
        """What was done to the columns, in words."""
        return [f"{name} in bins: {text}" for name, _, text in (given.partition("=") for given in self.bin or [])]


@dataclass(frozen=True)
class MechanismOptions:
    """How the noise is made."""

    mechanism: Annotated[
        str, option("geometric, laplace, gaussian, gaussian-pdp, gaussian-analytic or discrete-gaussian.", "NAME")
    ] = "geometric"
    epsilon: Annotated[Text, option("Privacy loss.", "NUMBER")] = None
    delta: Annotated[Text, option("For the Gaussian mechanisms.", "NUMBER")] = None
    neighbours: Annotated[str, option("add-remove or replace.", "RULE")] = "add-remove"
    threshold: Annotated[str, option("Counts below this half-integer after noise become 0.", "NUMBER")] = "0.5"

    def one(self) -> Mechanism:
        """The one mechanism that these options describe."""
        if self.epsilon is None:
            raise InvalidInput("no epsilon was given", fix="choose one: --epsilon 1")
        return self._make(
            parsing.parse_number("--epsilon", self.epsilon, "a number above 0"),
            None if self.delta is None else parsing.parse_number("--delta", self.delta, "a number between 0 and 1"),
        )

    def several(self) -> list[Mechanism]:
        """One for each delta and epsilon."""
        if self.epsilon is None:
            raise InvalidInput("no epsilon was given", fix="choose some: --epsilon 0.1,1,10")
        deltas: list[float] | list[None] = self.deltas() or [None]
        return [self._make(epsilon, delta) for delta in deltas for epsilon in parsing.parse_grid(self.epsilon)]

    def _make(self, epsilon: float, delta: float | None) -> Mechanism:
        from cellrisk.noise.mechanisms import mechanism

        return mechanism(
            self.mechanism, epsilon=epsilon, delta=delta, neighbours=self.neighbours, threshold=self.threshold_number
        )

    @property
    def names(self) -> list[str]:
        return parsing.split_names([self.mechanism])

    def deltas(self) -> list[float] | None:
        return None if self.delta is None else parsing.parse_numbers("--delta", self.delta)

    @property
    def threshold_number(self) -> float:
        return parsing.parse_number("--threshold", self.threshold, "0.5, 1.5, ...")


@dataclass(frozen=True)
class RiskOptions:
    """Which risks."""

    measure: Annotated[
        Texts, option("local, expected, shrinkage, marginal, marginal_shrinkage; default all.", "NAME")
    ] = None
    form: Annotated[Texts, option("published, exact, tight; default all.", "NAME")] = None
    weights: Annotated[Texts, option("uniform, records; default both.", "NAME")] = None
    alpha: Annotated[
        Texts, option("Dirichlet prior: mle (default), moments, or 1,1,1 in the order of the levels.", "ALPHA")
    ] = None
    sizes: Annotated[str, option("Cell sizes: poisson or negbin.", "NAME")] = "poisson"
    sizes_fit: Annotated[str, option("How sizes are fitted: mle, moments or bayes.", "NAME")] = "mle"
    zero_truncation: Annotated[bool, typer.Option(help="Empty cells are not seen: fit sizes from 1 on.")] = True
    attack: Annotated[str, option("homogeneity, plurality or proportional.", "NAME")] = "homogeneity"

    @property
    def narrowed(self) -> bool:
        return bool(self.measure or self.form or self.weights)

    @property
    def priors(self) -> dict[str, Any]:
        return {
            "alpha": parsing.parse_alpha(self.alpha),
            "sizes": self.sizes,
            "sizes_fit": self.sizes_fit,
            "zero_truncation": self.zero_truncation,
        }

    def many(self) -> dict[str, Any]:
        """Arguments for what takes several measures; all where none is named."""
        return {
            "measures": parsing.split_names(self.measure) or None,
            "forms": parsing.split_names(self.form) or None,
            "weights": parsing.split_names(self.weights) or None,
            "attack": self.attack,
            **self.priors,
        }

    def single(self) -> dict[str, Any]:
        """Arguments for what takes one measure; only those that are named."""
        found = {}
        for name, given in (("measure", self.measure), ("form", self.form), ("weights", self.weights)):
            words = parsing.split_names(given)
            if len(words) > 1:
                raise InvalidInput(f"--{name} takes one name here", got=", ".join(words))
            if words:
                found[name] = words[0]
        return found


@dataclass(frozen=True)
class LimitOptions:
    """What must not be exceeded."""

    max_risk: Annotated[Text, option("Largest risk, from 0 to 1.", "R")] = None
    max_people: Annotated[Text, option("Most people exposed on average.", "M")] = None
    margin: Annotated[Text, option("Largest risk above the chance level, from 0 to 1.", "R")] = None
    max_tvd: Annotated[Text, option("Largest total variation distance of marginals, from 0 to 1.", "T")] = None

    def numbers(self) -> dict[str, float | None]:
        return {
            name: None if text is None else parsing.parse_number(f"--{name.replace('_', '-')}", text)
            for name, text in vars(self).items()
        }


@dataclass(frozen=True)
class SimulationOptions:
    """How releases are simulated."""

    releases: Annotated[Text, option("Simulated releases.", "NUMBER")] = None
    seed: Annotated[str, option("Seed of the simulation.", "NUMBER")] = "0"
    cells: Annotated[str, option("Noise on the whole domain, or on observed cells only: domain, observed.", "NAME")] = (
        "domain"
    )

    def arguments(self) -> dict[str, Any]:
        found: dict[str, Any] = {"seed": parsing.parse_whole("--seed", self.seed), "cells": self.cells}
        if self.releases is not None:
            found["releases"] = parsing.parse_whole("--releases", self.releases)
        return found


COMMON = frozenset(
    field.name.replace("_", "-")
    for group in (TableOptions, MechanismOptions, RiskOptions, LimitOptions, SimulationOptions)
    for field in fields(group)
    if field.name != "source"
) | {"no-zero-truncation", "json"}
"""Options that a settings file may give for every command, whether it takes them or not."""


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters may be groups: the command line sees the options of each group one by one."""
    own = get_type_hints(command, include_extras=True)
    signature = inspect.signature(command)
    parameters = list(_flatten(signature, own))
    parameters.sort(key=lambda parameter: parameter.default is not inspect.Parameter.empty)

    def run(**given: Any) -> None:
        with inputs_of_one_command():
            keep_given_files(given)
            call(given)

    def call(given: dict[str, Any]) -> None:
        arguments = {}
        for name in signature.parameters:
            kind = own[name]
            if is_dataclass(kind) and isinstance(kind, type):
                arguments[name] = kind(**{field.name: given[field.name] for field in fields(kind)})
            else:
                arguments[name] = given[name]
        command(**arguments)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


OUTPUTS = ("output", "plot", "csv", "save")


def keep_given_files(given: dict[str, Any]) -> None:
    """Keeps every file that a command was given, except for those that it is to write, from being written over."""
    for name, value in given.items():
        if name in OUTPUTS or not isinstance(value, str | Path):
            continue
        if name == "ledger":
            keep_inputs("the ledger", *(f"{value}{end}" for end in ("", "-wal", "-shm", "-journal")))
        elif name == "source":
            from cellrisk.counts.sources import list_files_of

            keep_inputs("the records", *list_files_of(value))
        else:
            with suppress(OSError, ValueError):
                if Path(value).is_file():
                    keep_inputs(f"what --{name.replace('_', '-')} names", value)
    keep_inputs("the settings", *(path for path in map(os.environ.get, SETTINGS) if path))


SETTINGS = ("CELLRISK_POLICY", "CELLRISK_LEDGER_HEAD")
"""Variables that name files."""


def _flatten(signature: inspect.Signature, hints: dict[str, Any]) -> Iterator[inspect.Parameter]:
    for name, parameter in signature.parameters.items():
        kind = hints[name]
        if is_dataclass(kind) and isinstance(kind, type):
            inner = get_type_hints(kind, include_extras=True)
            for field in fields(kind):
                default = inspect.Parameter.empty if field.default is MISSING else field.default
                yield inspect.Parameter(
                    field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=inner[field.name]
                )
        else:
            yield parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=kind)
