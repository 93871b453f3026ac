"""Options in groups, so that every command offers the same ones: each group is a dataclass that knows its use."""

from __future__ import annotations

import inspect
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args, get_type_hints

import typer

from cellrisk.cli import parsing
from cellrisk.cli.help_panels import ATTACKER, LIMITS, MEASURES, NOISE, OTHER, OWN_PANELS, SIMULATION, TABLE
from cellrisk.cli.progress import progress_bar
from cellrisk.errors import InvalidInput
from cellrisk.system.checks import read_number, read_numbers, require_whole_number
from cellrisk.system.words import (
    Attack,
    BeliefName,
    EngineName,
    Form,
    MeasureName,
    MechanismName,
    MissingRule,
    Neighbours,
    NoisyCells,
    OutsideRule,
    SizesFamily,
    SizesFit,
    Weights,
    list_words,
    say_words,
)
from cellrisk.system.writing import inputs_of_one_command, keep_inputs

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable
    from cellrisk.decide.limits import Limit
    from cellrisk.decide.policies import Policies
    from cellrisk.noise.mechanisms import Mechanism
    from cellrisk.risk.priors import Priors

Text = str | None
Texts = list[str] | None
Number = float | None
Whole = int | None
Numbers = Any
"""A list that one text holds; Typer would take list[float] for an option that is repeated."""
Parsed = list[Any] | None
"""What is read in each text of an option that is repeated."""
STANDARD_INPUT = "standard input"
OUTSIDE_DEFAULT = "error; drop in release, publish-risk, report --public and choose --private"
Plot = Annotated[Text, typer.Option(metavar="FILE", help="Picture: .svg, .png or .pdf.")]
PerturbationText = Annotated[
    Text,
    typer.Option(
        metavar="RULE",
        help="In place of noise: cell-key, random-rounding:3, suppress-below:10,round:5, or a CSV file of P(m -> r).",
    ),
]
SpreadsheetSafe = Annotated[
    bool,
    typer.Option(
        "--spreadsheet-safe", help="In CSV, put an apostrophe before texts that a spreadsheet would take for formulas."
    ),
]
FIGURES, RISKS = ("max_caused", "max_certain", "max_ceiling", "max_epsilon"), ("max_risk", "max_people", "margin")
"""Limits on the figures to decide by, and on risks."""


def option(
    help: str,
    metavar: str,
    parse: Callable[[Any], Any] | None = None,
    default: bool | str = True,
    offered: Sequence[str] = (),
) -> Any:
    """An option that takes a text, or what a function of `parsing` reads in it.

    ``default`` tells in words what holds where nothing is given, and ``offered`` are the words that a shell completes.
    """

    def complete() -> list[str]:
        return list(offered)

    offer = complete if offered else None
    return typer.Option(metavar=metavar, help=help, parser=parse, show_default=default, autocompletion=offer)


def word(help: str, kind: Any, default: bool | str = True) -> Any:
    """An option that takes one word of a list, all of which its help names."""
    reader = partial(parsing.parse_word, kind=kind)
    return option(f"{help}: {say_words(kind)}.", "NAME", reader, default, list_words(kind))


def words(help: str, kind: Any, default: str) -> Any:
    """An option that takes one or more words of a list, all of which its help names."""
    return option(f"{help}: {say_words(kind)}.", "NAME", default=default, offered=list_words(kind))


def number(help: str, metavar: str = "NUMBER") -> Any:
    """An option that takes a number."""
    return option(help, metavar, read_number)


def whole(help: str) -> Any:
    """An option that takes a whole number."""
    return option(help, "NUMBER", parsing.parse_whole)


HomogeneityAlone = Annotated[Attack, option("Leave it out: it is homogeneity.", "NAME", str)]
MayBeMissing = Annotated[Texts, option("Column that can hold missing values.", "COLUMN")]
ObservedLevels = Annotated[
    Texts, option("Column whose levels are taken from the data; the guarantee does not cover which.", "COLUMN")
]
ParentCount = Annotated[Text, option("Column of counts in --parents, if its description is missing.", "COLUMN")]


@dataclass(frozen=True)
class TableOptions:
    """Where the records are, and what the columns mean."""

    panel: ClassVar[str] = TABLE
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="CSV, Parquet, Excel, SPSS, SAS, Stata or DuckDB file, a pattern in quotes such as "
            "'people-*.csv', an address such as sqlite://people.db, or - for CSV or Parquet on standard input.",
        ),
    ]
    qid: Annotated[
        Texts, option("Quasi-identifier: a column that others may know; several between commas.", "COLUMN")
    ] = None
    sensitive: Annotated[
        Texts, option("Sensitive attribute: a column to protect; several between commas.", "COLUMN")
    ] = None
    count: Annotated[Text, option("Column of counts, if the rows are not people; none: they are.", "COLUMN")] = None
    wide: Annotated[
        Texts, option("Columns of counts, one for each value of the sensitive attribute, between commas.", "COLUMNS")
    ] = None
    bin: Annotated[
        Parsed, option("Group numbers: age=5, or by edges age=0/18/65/120.", "COLUMN=BINS", parsing.parse_bins)
    ] = None
    levels: Annotated[
        Parsed, option("All values that can occur: income='<=50K|>50K'.", "COLUMN=LEVELS", parsing.parse_levels)
    ] = None
    missing: Annotated[MissingRule, word("What to do with missing values", MissingRule)] = "category"
    outside: Annotated[
        OutsideRule | None,
        word("What to do with records outside the declared levels", OutsideRule, OUTSIDE_DEFAULT),
    ] = None
    engine: Annotated[EngineName | None, word("What counts", EngineName, "duckdb, or the database itself")] = None
    table: Annotated[Text, option("Table of a database or of its file, or sheet of a workbook.", "NAME")] = None
    encoding: Annotated[Text, option("Encoding of a text file that is not in UTF-8, for example latin-1.", "NAME")] = (
        None
    )
    metadata: Annotated[
        Text, option("File that declares levels and bounds: CSVW or Table Schema (.json), SmartNoise (.yaml).", "FILE")
    ] = None
    memory_limit: Annotated[Text, option("Memory for counting, for example 4GB; the rest goes to disk.", "SIZE")] = None

    def tabulate(
        self,
        outside: OutsideRule = "error",
        qid: Sequence[str] | None = None,
        sensitive: Sequence[str] | None = None,
    ) -> FrequencyTable:
        """The table, of these columns or else of those that the options name.

        ``outside`` is the rule if no other is given.
        """
        from cellrisk.counts.tabulation import tabulate

        quasi = qid or parsing.split_names(self.qid)
        attributes = sensitive or parsing.split_names(self.sensitive)
        if not quasi:
            raise InvalidInput(
                "no quasi-identifiers were given", fix="name them: --qid age --qid sex, or --qid age,sex"
            )
        if not attributes:
            raise InvalidInput("no sensitive attribute was given", fix="name it: --sensitive income")
        return tabulate(
            self.source,
            quasi,
            attributes,
            bins=self.bins,
            levels=dict(self.levels or ()),
            count=self.count,
            missing=self.missing,
            outside=self.outside or outside,
            table=self.table,
            engine=self.engine,
            memory_limit=self.memory_limit,
            encoding=self.encoding,
            wide=parsing.split_names(self.wide),
            metadata=self.metadata,
            progress=progress_bar("counting"),
        )

    @property
    def is_file(self) -> bool:
        """Whether the source is a file of records, and no database."""
        from cellrisk.counts.files import is_address
        from cellrisk.counts.sqlite import find_stored

        return not is_address(self.source) and find_stored(self.source) is None

    @property
    def files(self) -> list[Path]:
        """The files that the source is read from, as far as its name tells."""
        from cellrisk.counts.sources import list_files_of

        return list_files_of(self.source)

    @property
    def typed(self) -> str:
        """The source as it was typed."""
        return "-" if Path(self.source).stem == STANDARD_INPUT else self.source

    @property
    def bins(self) -> dict[str, float | list[float]]:
        """The width or the edges of each column's bins."""
        return dict(self.bin or ())

    @property
    def preparation(self) -> list[str]:
        """What was done to the columns, in words."""
        edges = {name: given if isinstance(given, list) else [given] for name, given in self.bins.items()}
        return [f"{name} in bins: {'/'.join(f'{edge:.15g}' for edge in given)}" for name, given in edges.items()]


@dataclass(frozen=True)
class MechanismOptions:
    """How the noise is made."""

    panel: ClassVar[str] = NOISE
    mechanism: Annotated[MechanismName, word("How the noise is made", MechanismName)] = "geometric"
    epsilon: Annotated[Number, number("Privacy loss: smaller is more private.")] = None
    delta: Annotated[Number, number("Only for the Gaussian mechanisms.")] = None
    neighbours: Annotated[Neighbours, word("Neighbouring tables differ in one record", Neighbours)] = "add-remove"
    threshold: Annotated[float, number("Noisy counts below this half-integer become 0.")] = 0.5

    def one(self) -> Mechanism:
        """The mechanism that these options describe."""
        from cellrisk.noise.mechanisms import mechanism

        if self.epsilon is None:
            raise InvalidInput("no epsilon was given", fix="choose one: --epsilon 1")
        return mechanism(
            self.mechanism,
            epsilon=self.epsilon,
            delta=self.delta,
            neighbours=self.neighbours,
            threshold=self.threshold,
        )


@dataclass(frozen=True)
class SeveralMechanismOptions(MechanismOptions):
    """How the noise is made, for commands that look at several epsilons and deltas, and some at several mechanisms."""

    mechanism: Annotated[Any, option(f"How the noise is made: {say_words(MechanismName)}.", "NAME")] = "geometric"
    epsilon: Annotated[
        Numbers, option("Privacy loss: numbers between commas, or low:high:points.", "NUMBERS", parsing.parse_points)
    ] = None
    delta: Annotated[Numbers, option("Only for the Gaussian mechanisms.", "NUMBERS", read_numbers)] = None

    def all(self) -> list[Mechanism]:
        """A mechanism for each delta and epsilon."""
        if self.epsilon is None:
            raise InvalidInput("no epsilon was given", fix="choose some: --epsilon 0.1,1,10")
        return [
            MechanismOptions(self.mechanism, epsilon, delta, self.neighbours, self.threshold).one()
            for delta in self.delta or [None]
            for epsilon in self.epsilon
        ]

    def arguments(self) -> dict[str, Any]:
        """Arguments for what takes several mechanisms by their names."""
        return {**asdict(self), "mechanism": parsing.split_names([self.mechanism])}


@dataclass(frozen=True)
class RiskWords:
    """Which risk, for commands that look at one."""

    panel: ClassVar[str] = MEASURES
    measure: Annotated[Texts, words("Which measure", MeasureName, "local")] = None
    form: Annotated[Texts, words("In which form", Form, "tight")] = None
    weights: Annotated[Texts, words("Average over cells or over people", Weights, "records")] = None
    attack: Annotated[Attack, word("How the attacker guesses", Attack)] = "homogeneity"

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

    def within(self, policies: Policies) -> dict[str, Any]:
        """The words of the risk; a policy says which, and nothing else may be asked for."""
        return policies.fix_words(self.single()) if policies else self.single()


@dataclass(frozen=True)
class PriorOptions:
    """The priors of the measures that need them."""

    panel: ClassVar[str] = MEASURES
    alpha: Annotated[
        Parsed,
        option(
            "Dirichlet prior: mle, moments, or numbers such as 1,1,1 in the order of the levels.",
            "ALPHA",
            parsing.parse_alpha,
            "mle",
        ),
    ] = None
    sizes: Annotated[SizesFamily, word("Distribution of cell sizes", SizesFamily)] = "poisson"
    sizes_fit: Annotated[SizesFit, word("How it is fitted to the sizes", SizesFit)] = "mle"
    zero_truncation: Annotated[bool, typer.Option(help="Fit sizes from 1 on, as empty cells are not seen.")] = True

    @property
    def priors(self) -> Priors:
        """One prior for all attributes, or one for each that is named."""
        from cellrisk.risk.priors import Priors

        given = self.alpha or [("", "mle")]
        named = dict(given)
        if len(given) > 1 and "" in named:
            raise InvalidInput("--alpha is given more than once", fix="name the attributes: --alpha income=1,1")
        return Priors(named.get("", named), self.sizes, self.sizes_fit, self.zero_truncation)


@dataclass(frozen=True)
class OneRiskOptions(PriorOptions, RiskWords):
    """Which risk, and the priors of its measure."""


@dataclass(frozen=True)
class RiskOptions(OneRiskOptions):
    """Which risks, for commands that look at several."""

    measure: Annotated[Texts, words("Which measures, between commas", MeasureName, "all")] = None
    form: Annotated[Texts, words("In which forms, between commas", Form, "all")] = None
    weights: Annotated[Texts, words("Average over cells or over people", Weights, "both")] = None

    @property
    def narrowed(self) -> bool:
        return bool(self.measure or self.form or self.weights)

    def many(self) -> dict[str, Any]:
        """Arguments for what takes several measures; all where none is named."""
        return {
            "measures": parsing.split_names(self.measure) or None,
            "forms": parsing.split_names(self.form) or None,
            "weights": parsing.split_names(self.weights) or None,
            "attack": self.attack,
            "priors": self.priors,
        }


@dataclass(frozen=True)
class AttackerOptions:
    """An attacker who does the mathematics."""

    panel: ClassVar[str] = ATTACKER
    certainty: Annotated[
        Numbers, option("How sure the attacker must be, above 0.5 and below 1.", "NUMBERS", read_numbers, "0.95")
    ] = None
    belief: Annotated[
        str,
        option(
            f"What the attacker expects: {', '.join(list_words(BeliefName))}, or shapes/theta: 0.4,0.15/0.9.",
            "BELIEF",
        ),
    ] = "negbin"

    def arguments(self) -> dict[str, Any]:
        """Arguments for what takes certainties and a belief."""
        return {"belief": self.belief, **({} if self.certainty is None else {"certainty": self.certainty})}

    def single(self) -> dict[str, Any]:
        """Arguments for what takes one certainty."""
        if self.certainty is not None and len(self.certainty) > 1:
            raise InvalidInput("--certainty takes one number here", got=f"{len(self.certainty)} numbers")
        return {"belief": self.belief, **({} if self.certainty is None else {"certainty": self.certainty[0]})}


@dataclass(frozen=True)
class GateOptions:
    """Figures above which a command ends with exit code 3."""

    panel: ClassVar[str] = LIMITS
    max_caused: Annotated[
        Number, number("Exit with code 3 if a larger share is given away because of their own record.", "R")
    ] = None
    max_certain: Annotated[Number, number("Exit with code 3 if a larger share is named with --certainty.", "R")] = None
    max_ceiling: Annotated[Number, number("Exit with code 3 if the worst case for one record is above R.", "R")] = None


@dataclass(frozen=True)
class LimitOptions:
    """What must not be exceeded."""

    panel: ClassVar[str] = LIMITS
    max_caused: Annotated[Number, number("Largest share of people given away because of their own record.", "R")] = None
    max_certain: Annotated[Number, number("Largest share of people whom an attacker names with --certainty.", "R")] = (
        None
    )
    max_ceiling: Annotated[
        Number, number("Largest worst case for one record: two equally likely values, above 0.5.", "R")
    ] = None
    max_epsilon: Annotated[Number, number("Largest epsilon.", "E")] = None
    max_risk: Annotated[Number, number("Largest risk by --measure, from 0 to 1.", "R")] = None
    max_people: Annotated[Number, number("Largest number of people exposed on average.", "M")] = None
    margin: Annotated[Number, number("Largest risk above the chance level, from 0 to 1.", "R")] = None
    max_tvd: Annotated[Number, number("Largest error of marginals: a total variation distance, from 0 to 1.", "T")] = (
        None
    )

    def within(
        self, policies: Policies, question: dict[str, Any], attack: Attack = "homogeneity", **attacker: Any
    ) -> tuple[Limit, ...]:
        """The limits; any that is looser than a policy's on the same metric is refused."""
        from cellrisk.decide.limits import RiskDefinition, read_limits

        given = {name: getattr(self, name) for name in (*FIGURES, *RISKS)}
        limits = read_limits(**given, **attacker, risk=RiskDefinition(**question, attack=attack))
        policies.check_tighter(limits)
        return limits


@dataclass(frozen=True)
class SimulationOptions:
    """How releases are simulated."""

    panel: ClassVar[str] = SIMULATION
    releases: Annotated[int, whole("How many releases are simulated.")] = 20
    seed: Annotated[int, whole("Seed of the simulation.")] = 0
    cells: Annotated[NoisyCells, word("Noise on the whole domain, or on observed cells only", NoisyCells)] = "domain"

    def arguments(self) -> dict[str, Any]:
        """Arguments for what simulates releases."""
        require_whole_number("--seed", self.seed, 0)
        require_whole_number("--releases", self.releases, 1)
        return asdict(self)


@dataclass(frozen=True)
class UtilitySimulationOptions(SimulationOptions):
    """How releases are simulated, where their use is what is asked for."""

    releases: Annotated[int, whole("How many releases are simulated.")] = 100


COMMON = frozenset(
    field.name.replace("_", "-")
    for group in (TableOptions, MechanismOptions, RiskOptions, AttackerOptions, LimitOptions, SimulationOptions)
    for field in fields(group)
    if field.name != "source"
) | {"no-zero-truncation", "json"}
"""Options that a settings file may give for every command, whether it takes them or not."""


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters may be groups: the command line sees the options of each group one by one."""
    own = get_type_hints(command, include_extras=True)
    if not any(map(is_dataclass, own.values())):
        return command
    signature = inspect.signature(command)
    parameters = list(_flatten(signature, own))
    parameters.sort(key=lambda parameter: parameter.default is not inspect.Parameter.empty)

    def run(**given: Any) -> None:
        with inputs_of_one_command(), standard_input_as_file(given):
            keep_given_files(given)
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


@contextmanager
def standard_input_as_file(given: dict[str, Any]) -> Iterator[None]:
    """Where the source is "-", what comes on standard input becomes a private file, which the command then reads."""
    from cellrisk.system.scratch import private_folder

    if given.get("source") != "-":
        yield
        return
    if sys.stdin is None or sys.stdin.isatty():
        raise InvalidInput(
            "nothing comes on standard input", fix="send a table to it: cat people.csv | cellrisk assess -"
        )
    with private_folder("input") as folder:
        path = folder / f"{STANDARD_INPUT}.csv"
        with path.open("xb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy, 2**20)
        with path.open("rb") as stream:
            parquet = stream.read(4) == b"PAR1"
        given["source"] = str(path.rename(path.with_suffix(".parquet")) if parquet else path)
        yield


OUTPUTS = ("output", "plot", "csv", "save", "registry", "acro", "write")


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
                    named = "set" if name == "set_file" else name.replace("_", "-")
                    keep_inputs(f"what --{named} names", value)
    keep_inputs("the settings", *(path for path in map(os.environ.get, SETTINGS) if path))


SETTINGS = ("CELLRISK_POLICY", "CELLRISK_LEDGER_HEAD")
"""Variables that name files."""


@cache
def read_hints(kind: type) -> dict[str, Any]:
    """The types of a group's fields, each with its panel; most commands have the same groups."""
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        home: Any = next(each for each in kind.__mro__ if field.name in inspect.get_annotations(each))
        hints[field.name] = _put_in_panel(hints[field.name], home.panel)
    return hints


def _put_in_panel(hint: Any, panel: str) -> Any:
    """The type of an option whose help stands in a panel."""
    while not hasattr(hint, "__metadata__"):  # Python 3.10 wraps the type of what is None by default
        hint = get_args(hint)[0]
    kind, information = get_args(hint)
    information = copy(information)
    information.rich_help_panel = panel
    return Annotated[kind, information]


def _flatten(signature: inspect.Signature, hints: dict[str, Any]) -> Iterator[inspect.Parameter]:
    for name, parameter in signature.parameters.items():
        kind = hints[name]
        if is_dataclass(kind) and isinstance(kind, type):
            inner = read_hints(kind)
            for field in fields(kind):
                default = inspect.Parameter.empty if field.default is MISSING else field.default
                yield inspect.Parameter(
                    field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=inner[field.name]
                )
        else:
            if get_args(kind):
                kind = _put_in_panel(kind, OWN_PANELS.get(name, OTHER))
            yield parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=kind)
