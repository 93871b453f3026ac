"""Options in groups, each a dataclass, so every command has the same ones."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

import cellrisk as cr
from cellrisk.cli import parsing
from cellrisk.errors import InvalidInput
from cellrisk.system import choices
from cellrisk.system.checks import read_number, split_names
from cellrisk.system.choices import EngineName, Neighbours, OutsideRule, list_words, say_words

if TYPE_CHECKING:
    from cellrisk.decide.limits import Limit
    from cellrisk.decide.policies import Policies
Text = str | None
Texts = list[str] | None
Number = float | None
Whole = int | None
Numbers = Any
"""A list in one text; Typer would take list[float] for an option that is repeated."""
Parsed = list[Any] | None
"""What was read in each text of an option that is repeated."""
LEVELS = "COLUMN=LEVELS"
STANDARD_INPUT = "standard input"


def option(
    help: str,
    metavar: str,
    parse: Callable[[Any], Any] | None = None,
    default: bool | str = True,
    offered: Sequence[str] = (),
) -> Any:
    """An option whose text is read by a function of `parsing`.

    ``default`` describes in words what holds if nothing is given; a shell completes the words ``offered``.
    """
    complete = (lambda: list(offered)) if offered else None
    return typer.Option(metavar=metavar, help=help, parser=parse, show_default=default, autocompletion=complete)


def word(help: str, kind: Any, default: bool | str = True) -> Any:
    """An option that takes one word of a list, which is its type."""
    return typer.Option(metavar="NAME", help=f"{help}: {say_words(kind)}.", show_default=default)


def several_words(help: str, *kinds: Any, default: bool | str = True) -> Any:
    """A comma-separated option that takes words of lists."""
    offered = [name for kind in kinds for name in list_words(kind)]
    return option(f"{help}: {', '.join(offered)}.", "NAMES", default=default, offered=offered)


number = partial(option, metavar="NUMBER", parse=read_number)
whole = partial(option, metavar="NUMBER", parse=parsing.parse_whole)
share = partial(option, metavar="SHARE", parse=parsing.parse_share)
"""An option that takes a share, such as 0.005 or 0.5%."""
FORMULAS = "In CSV, mark texts that look like formulas by a '."
SpreadsheetSafe = Annotated[bool, typer.Option("--spreadsheet-safe", help=FORMULAS)]
NewLedger = Annotated[bool, typer.Option("--new-ledger", help="Make this ledger; refused if it exists.")]
RULES = "cell-key, random-rounding:3, suppress-below:10,round:5, or a CSV file of P(m -> r)"
AVERAGES = "Average over groups or over people"
OneMeasure = Annotated[choices.MeasureName | None, word("Measure of risk", choices.MeasureName, "local")]
OneForm = Annotated[choices.Form | None, word("Form of the measure", choices.Form, "tight")]
OneWeights = Annotated[choices.Weights | None, word(AVERAGES, choices.Weights, "records")]
Seed = Annotated[int, whole("Seed of the simulation.")]
AttackName = Annotated[choices.Attack, word("Attack", choices.Attack)]
IMPOSSIBLE = "Combination that cannot occur: 'sex=m;pregnant=yes|maybe'."
Exclude = Annotated[Parsed, option(IMPOSSIBLE, "RULE", parsing.parse_rule)]
SOURCES = (
    "CSV, Parquet, Excel, SPSS, SAS, Stata or DuckDB file, a pattern in quotes such as 'people-*.csv', an address such "
    "as sqlite://people.db, or - for CSV or Parquet on standard input."
)
OUTSIDE_DEFAULT = "error; drop in release, publish-risk, choose-private and report --public"
CONTRIBUTIONS = "Most records of one person: kept with --person, else asserted."
DECLARES = "File that declares levels and bounds: CSVW or Table Schema (.json)."
Qid = Annotated[Texts, option("Quasi-identifiers: columns that others may know; comma-separated.", "COLUMNS")]


@dataclass(frozen=True)
class TableOptions:
    """Where the records are, and what the columns mean."""

    source: Annotated[str, typer.Argument(metavar="FILE", help=SOURCES)]
    qid: Qid = None
    sensitive: Annotated[Texts, option("Sensitive attributes: columns to protect; comma-separated.", "COLUMNS")] = None
    count: Annotated[Text, option("Column of counts, if a row is not a person; none: it is.", "COLUMN")] = None
    wide: Annotated[Texts, option("Columns of counts, one for each sensitive value.", "COLUMNS")] = None
    bin: Annotated[Parsed, option("Group numbers: age=5, or age=0/18/65.", "COLUMN=BINS", parsing.parse_bins)] = None
    levels: Annotated[Parsed, option("All possible values: income='<=50K|>50K'.", LEVELS, parsing.parse_levels)] = None
    missing: Annotated[choices.MissingRule, word("Missing values", choices.MissingRule)] = "category"
    outside: Annotated[OutsideRule | None, word("Records outside the levels", OutsideRule, OUTSIDE_DEFAULT)] = None
    engine: Annotated[EngineName | None, word("Engine that counts", EngineName, "duckdb, or the database")] = None
    table: Annotated[Text, option("Table of a database, or sheet of a workbook.", "NAME")] = None
    encoding: Annotated[Text, option("Encoding of a text file, for example latin-1.", "NAME", default="UTF-8")] = None
    metadata: Annotated[Text, option(DECLARES, "FILE")] = None
    memory_limit: Annotated[Text, option("Memory for counting, for example 4GB; the rest goes to disk.", "SIZE")] = None
    person: Annotated[Text, option("Column that identifies people, who may have several records.", "COLUMN")] = None
    contributions: Annotated[Whole, whole(CONTRIBUTIONS, default="1")] = None
    per_group: Annotated[Whole, whole("Most of these in one count.", default="as --contributions")] = None

    def tabulate(
        self,
        outside: str = "error",
        qid: Sequence[str] | None = None,
        sensitive: Sequence[str] | None = None,
        seed: int = 0,
    ) -> cr.FrequencyTable:
        """Count the table, of these columns or else of those that the options name.

        ``outside`` is the rule if no other is given, ``seed`` that by which records of a person are drawn.
        """
        quasi = qid or split_names(self.qid)
        attributes = sensitive or split_names(self.sensitive)
        names = "count missing table engine memory_limit encoding metadata person contributions per_group"
        given: Any = {name: getattr(self, name) for name in names.split()}
        given |= {"bins": dict(self.bin or ()), "levels": dict(self.levels or ()), "outside": self.outside or outside}
        given |= {"wide": split_names(self.wide), "seed": seed}
        return cr.tabulate(self.source, quasi, attributes, **given, progress=progress_bar("counting"))

    @property
    def is_file(self) -> bool:
        """Whether the source is a file of records, and not a database."""
        from cellrisk.counts.files import find_stored, is_address

        return not is_address(self.source) and find_stored(self.source) is None


@dataclass(frozen=True)
class NamedMechanismOptions:
    """How the noise is made, at any epsilon."""

    mechanism: Annotated[choices.MechanismName, word("Mechanism", choices.MechanismName)] = "geometric"
    delta: Annotated[Number, number("Delta of the Gaussian mechanisms.")] = None
    neighbours: Annotated[Neighbours, word("Neighbouring tables differ in one record", Neighbours)] = "add-remove"
    threshold: Annotated[float, number("Noisy counts below this half-integer become 0.")] = 0.5


@dataclass(frozen=True)
class MechanismOptions(NamedMechanismOptions):
    """How the noise is made."""

    epsilon: Annotated[Number, number("Privacy loss: smaller is more private.")] = None

    def one(self) -> cr.Mechanism:
        """The mechanism that these options describe."""
        if self.epsilon is None:
            raise InvalidInput("no epsilon was given", fix="choose one: --epsilon 1")
        given: Any = {name: getattr(self, name) for name in ("epsilon", "delta", "neighbours", "threshold")}
        return cr.mechanism(self.mechanism, **given)


@dataclass(frozen=True)
class NoiseOptions(MechanismOptions):
    """How the noise is made, or the perturbation instead of it."""

    perturbation: Annotated[Text, option(f"A perturbation instead of noise: {RULES}.", "RULE")] = None

    def read_perturbation(self, *compared: str) -> cr.Perturbation | None:
        """Return the perturbation, if one was given; options of noise beside it are refused, except those compared."""
        if self.perturbation is None:
            return None
        usual = {field.name: (field.default, None) for field in fields(MechanismOptions) if field.name not in compared}
        named = [name for name, values in usual.items() if getattr(self, name) not in values]
        refuse_beside("a perturbation has no epsilon, neighbours or noise", named)
        return cr.read_perturbation(self.perturbation)


def refuse_beside(why: str, names: Sequence[str]) -> None:
    """Refuse options that would have no effect, by their names."""
    if names:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in names)
        raise InvalidInput(why, got=options, fix=f"leave {options} out")


@dataclass(frozen=True)
class PriorOptions:
    """The priors of the measures that need them."""

    alpha: Annotated[Parsed, option("Dirichlet: mle, moments or 1,1,1.", "ALPHA", parsing.parse_alpha, "mle")] = None
    sizes: Annotated[choices.SizesFamily, word("Distribution of group sizes", choices.SizesFamily)] = "poisson"
    sizes_fit: Annotated[choices.SizesFit, word("Fit of the group sizes", choices.SizesFit)] = "mle"
    zero_truncation: Annotated[bool, typer.Option(help="Fit sizes from 1 on, as empty groups are not seen.")] = True

    @property
    def priors(self) -> cr.Priors:
        """One prior for all attributes, or one for each that is named."""
        given = self.alpha or [("", "mle")]
        named = dict(given)
        if len(given) > 1 and "" in named:
            raise InvalidInput("--alpha is given more than once", fix="name the attributes: --alpha income=1,1")
        return cr.Priors(named.get("", named), self.sizes, self.sizes_fit, self.zero_truncation)


@dataclass(frozen=True)
class SeveralRiskOptions(PriorOptions):
    """Which risks, and the priors of their measures."""

    measure: Annotated[Texts, several_words("Measures of risk", choices.MeasureName, default="all")] = None
    form: Annotated[Texts, several_words("Forms of the measures", choices.Form, default="all")] = None
    weights: Annotated[Texts, several_words(AVERAGES, choices.Weights, default="both")] = None
    attack: AttackName = "homogeneity"

    def many(self) -> dict[str, Any]:
        """Arguments for what takes several measures; all if none is named."""
        named = {"measures": self.measure, "forms": self.form, "weights": self.weights}
        chosen = {name: split_names(given) or None for name, given in named.items()}
        return {**chosen, "attack": self.attack, "priors": self.priors}


CERTAINTY = "How sure the attacker must be: shares above 0.5 and below 1."
BELIEF = "What the attacker expects: negbin, table, or shapes/theta: 0.4,0.15/0.9."


@dataclass(frozen=True)
class AttackerOptions:
    """The informed attacker, who knows the mechanism and has a prior, and the values that matter."""

    certainty: Annotated[Numbers, option(CERTAINTY, "SHARES", parsing.parse_shares, "0.95")] = None
    belief: Annotated[Text, option(BELIEF, "BELIEF", default="negbin", offered=list_words(choices.BeliefName))] = None
    harmful: Annotated[Texts, option("Values that must not be learnt; with commas.", "VALUES", default="all")] = None
    unions: Annotated[Texts, typer.Option("--also-as", metavar="A+B", help="Values also assessed as one.")] = None

    def arguments(self) -> dict[str, Any]:
        """Arguments for what takes certainties, a belief, harmful values and unions."""
        named = {"certainty": self.certainty, "harmful": split_names(self.harmful), "unions": self.unions}
        return {"belief": self.belief or "negbin", **{name: values for name, values in named.items() if values}}

    def single(self) -> dict[str, Any]:
        """Arguments for what takes one certainty."""
        if self.certainty is not None and len(self.certainty) > 1:
            raise InvalidInput("--certainty takes one number here", got=f"{len(self.certainty)} numbers")
        return {name: value[0] if name == "certainty" else value for name, value in self.arguments().items()}


@dataclass(frozen=True)
class LimitOptions:
    """What must not be exceeded; a command ends with exit code 3 if it is."""

    max_caused: Annotated[Number, share("Largest share of a category revealed because of their own record.")] = None
    max_certain: Annotated[Number, share("Largest share of a category learnt with --certainty.")] = None
    max_person: Annotated[Number, share("Most that one person's own record may add.")] = None
    max_ceiling: Annotated[Number, share("Largest worst case for one record, above 0.5 and below 1.")] = None
    max_posterior: Annotated[Text, option("From a suspicion of P to at most Q percent: 5:20.", "P:Q")] = None
    max_error: Annotated[Number, number("A published count is within this of the true one, 95%.")] = None
    max_risk: Annotated[Number, share("Largest risk by --measure, or share of people revealed.")] = None
    max_epsilon: Annotated[Number, number("Largest epsilon.")] = None
    max_people: Annotated[Number, number("Largest number of people revealed on average.")] = None
    margin: Annotated[Number, share("Largest risk above that of a blind attacker.")] = None

    def within(
        self, policies: Policies, question: dict[str, Any], attack: choices.Attack = "homogeneity", **attacker: Any
    ) -> tuple[Limit, ...]:
        """Return the limits; any that is looser than a policy's on the same metric is refused."""
        from cellrisk.decide.limits import RiskDefinition, read_limits

        limits = read_limits(**asdict(self), **attacker, risk=RiskDefinition(**question, attack=attack))
        policies.check_tighter(limits)
        return limits


@contextmanager
def standard_input_as_file(given: dict[str, Any]) -> Iterator[None]:
    """If the source is "-", copy standard input to a private file, which the command then reads."""
    from cellrisk.system.scratch import private_folder

    if given.get("source") != "-":
        yield
        return
    if sys.stdin is None or sys.stdin.isatty():
        raise InvalidInput("standard input is empty", fix="send a table to it: cat people.csv | cellrisk assess -")
    with private_folder("input") as folder:
        path = folder / f"{STANDARD_INPUT}.csv"
        with path.open("xb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy, 2**20)
        with path.open("rb") as stream:
            parquet = stream.read(4) == b"PAR1"
        given["source"] = str(path.rename(path.with_suffix(".parquet")) if parquet else path)
        yield


def progress_bar(doing: str) -> Callable[[float], None] | None:
    """Return a function to call with the share done; None if standard error is not a terminal."""
    if not sys.stderr.isatty():
        return None

    def show(share: float) -> None:
        sys.stderr.write(f"\r{doing}: {share:4.0%}" if share < 1 else f"\r{' ' * (len(doing) + 6)}\r")
        sys.stderr.flush()

    return show
