"""A set of tables as it is asked for, from a file or in Python: what each is of, its noise, and what the set costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, cast

from cellrisk.counts.files import is_address
from cellrisk.counts.filters import Part, read_part
from cellrisk.counts.joint import Asked
from cellrisk.counts.schema import read_mapping, read_names
from cellrisk.counts.unit import Unit
from cellrisk.decide.policy_files import parse_settings, read_settings_file
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.noise.mechanisms import mechanism as make_mechanism
from cellrisk.repeat.accounting.ceilings import find_ceiling
from cellrisk.repeat.accounting.composition import compose
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.risk.ceilings import Ceiling
from cellrisk.system.checks import read_bins as parse_bins
from cellrisk.system.checks import read_list, require_kind
from cellrisk.system.choices import MechanismName, Neighbours
from cellrisk.system.formatting import claim

MOST_TABLES = 20
OF_TABLES = ("bins", "mechanism", "epsilon", "delta", "neighbours", "threshold")
"""Arguments about what is published; the others of a set are about how its records are read."""
OF_UNIT = ("person", "contributions", "per_group")
"""Arguments about both."""
TABLE_KEYS = ("name", "qid", "bin", "where", "mechanism", "epsilon", "delta", "threshold")
PYTHON_KEYS = {"quasi_identifiers": "qid", "bins": "bin"}
"""Other names of the same, as Python functions have them."""
READ_HERE = ("bin", "levels", "noise", "table")
SET_KEYS = (
    *("source", "sensitive", "count", "missing", "outside", "mechanism", "neighbours", "engine", "source-table"),
    *("memory-limit", "person", "epsilon", "delta", "threshold", "contributions", "per-group", *READ_HERE),
)


@dataclass(frozen=True)
class SetTable:
    """One table of a set."""

    number: int
    """From 1, in the order of the set."""
    quasi_identifiers: tuple[str, ...]
    bins: Mapping[str, Any]
    part: Part
    mechanism: Mechanism
    name: str | None = None

    @property
    def title(self) -> str:
        """Return how it is called in what is printed."""
        return f"table {self.number}" if self.name is None else f'"{self.name}"'

    @property
    def where(self) -> str | None:
        """The people in it, in words; None where everybody is."""
        return self.part.describe() if self.part else None

    @property
    def asked(self) -> Asked:
        return Asked(self.quasi_identifiers, self.bins, self.part)

    def describe(self) -> str:
        """Its columns, and the people in it where not everybody is."""
        part = f"; {self.where}" if self.where else ""
        return f"{', '.join(self.quasi_identifiers)}{part}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "name": self.name,
            "quasi_identifiers": list(self.quasi_identifiers),
            "bins": {name: list(bins) if isinstance(bins, tuple) else bins for name, bins in self.bins.items()},
            "where": self.where,
            "mechanism": self.mechanism.to_dict(),
        }


def read_tables(
    tables: Sequence[Mapping[str, Any]],
    sensitive: str,
    bins: Mapping[str, Any] | Sequence[str] | None = None,
    mechanism: Mechanism | MechanismName = USUAL_MECHANISM,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
    person: str | None = None,
    contributions: int | None = None,
    per_group: int | None = None,
) -> tuple[SetTable, ...]:
    """The tables of a set; what one does not say of itself is what all share. Refuse what cannot be assessed."""
    if isinstance(tables, str | Mapping) or not isinstance(tables, Sequence):
        raise InvalidInput("tables must be a list", got=f"a {type(tables).__name__}", allowed='[{"qid": ["age"]}, ...]')
    if not 1 <= len(tables) <= MOST_TABLES:
        allowed = f"1 to {MOST_TABLES}"
        raise InvalidInput(
            "a set has at least one table, and not too many", got=f"{len(tables)} tables", allowed=allowed
        )
    require_kind("sensitive", sensitive, str)
    shared_bins = read_bins(bins, "bins")
    unit = Unit.read(person, contributions, per_group)
    shared = {"mechanism": mechanism, "epsilon": epsilon, "delta": delta, "threshold": threshold}
    made = tuple(
        _read_table(number, given, sensitive, shared_bins, shared, neighbours)
        for number, given in enumerate(tables, start=1)
    )
    made = tuple(replace(table, mechanism=table.mechanism.with_unit(unit)) for table in made)
    used = {name for table in made for name in table.quasi_identifiers}
    unused = [name for name in shared_bins if name not in used]
    if unused:
        raise InvalidInput(f"bins are given for column '{unused[0]}', which no table has")
    contents = [({*table.asked.columns()}, {*table.part.conditions}) for table in made]
    for first, second in combinations(range(len(made)), 2):
        if contents[first] == contents[second]:
            raise same_table_twice(made[first], made[second])
    kinds = {table.mechanism.neighbours for table in made}
    if len(kinds) > 1:
        raise InvalidInput(
            "the tables of a set have different neighbours, so their guarantees cannot be added up",
            got=" and ".join(sorted(kinds)),
            fix="state all under the same: epsilon under add-remove is 2 epsilon under replace",
        )
    return made


def _read_table(
    number: int,
    given: Mapping[str, Any],
    sensitive: str,
    shared_bins: Mapping[str, Any],
    shared: Mapping[str, Any],
    neighbours: Neighbours | None,
) -> SetTable:
    whose = f"table {number} of the set"
    if not isinstance(given, Mapping):
        raise InvalidInput(f"{whose} must be a mapping", got=f"a {type(given).__name__}")
    read = {PYTHON_KEYS.get(str(key), str(key)): value for key, value in given.items()}
    unknown = [key for key in read if key not in TABLE_KEYS]
    if unknown:
        of_set = unknown[0] in SET_KEYS or unknown[0] in OF_UNIT
        raise UnknownName(
            f"unknown key in {whose}",
            got=repr(unknown[0]),
            allowed=", ".join(TABLE_KEYS),
            fix="give it once, for all tables" if of_set else None,
        )
    if "qid" not in read:
        raise InvalidInput(f"{whose} names no quasi-identifiers", fix='give them: qid = ["age", "sex"]')
    name = read.get("name")
    if name is not None and (not isinstance(name, str) or not 0 < len(name) <= 100):
        raise InvalidInput(f"the name of {whose} must be a text", allowed="1 to 100 characters")
    quasi = read_names(read["qid"], f"qid of {whose}")
    if sensitive in quasi:
        raise InvalidInput(f"'{sensitive}' cannot be both a quasi-identifier of {whose} and sensitive")
    own_bins = read_bins(read.get("bin"), f"bins of {whose}")
    strange = [column for column in own_bins if column not in quasi]
    if strange:
        raise InvalidInput(f"bins are given for column '{strange[0]}', which {whose} does not have")
    bins = {column: value for column, value in {**shared_bins, **own_bins}.items() if column in quasi}
    described = {key: read.get(key, value) for key, value in shared.items()}
    if isinstance(read.get("mechanism"), Mechanism):  # what tables share is not about it
        described, neighbours = {key: read.get(key) for key in shared}, None
    named: Any = described.pop("mechanism")
    if not isinstance(named, Mechanism | str):
        raise InvalidInput(f"the mechanism of {whose} must be a name", got=f"a {type(named).__name__}")
    if not isinstance(named, Mechanism) and described["epsilon"] is None:
        raise InvalidInput(f"no epsilon was given for {whose}", fix="give it for the table, or once for all of them")
    try:
        made = make_mechanism(cast(Any, named), neighbours=neighbours, **described)
    except (InvalidInput, UnknownName) as refusal:
        raise refusal.within(f"the mechanism of {whose}") from None
    found = SetTable(number, quasi, bins, read_part(read.get("where"), whose), made, name)
    found.asked.columns()  # refuses bins that cannot be
    return found


def same_table_twice(first: SetTable, second: SetTable) -> InvalidInput:
    return InvalidInput(
        f"{first.title} and {second.title} are the same table, released twice: an attacker averages the noise away",
        fix="leave one out, and ask what repeating it reveals: cellrisk average ... --releases 2",
    )


def find_together(tables: Sequence[SetTable]) -> tuple[tuple[int, ...], ...]:
    """The largest collections of tables, by their places, that one person can be in: parts that exclude each other are
    told from their conditions, never from the records. A person with several records can be in all of them.

    >>> women, men = ({"qid": "age", "where": {"sex": sex}, "epsilon": 1.0} for sex in "fm")
    >>> find_together(read_tables([women, men, {"qid": "town", "epsilon": 1.0}], "job"))
    ((0, 2), (1, 2))
    """
    if tables[0].mechanism.unit.kind == "person":
        return (tuple(range(len(tables))),)
    apart = {
        (first, second)
        for first, second in combinations(range(len(tables)), 2)
        if tables[first].part.excludes(tables[second].part)
    }
    found: list[frozenset[int]] = [frozenset()]
    for table in range(len(tables)):
        grown = []
        for some in found:
            fits = frozenset(other for other in some if (other, table) not in apart)
            grown += [some, fits | {table}] if len(fits) < len(some) else [fits | {table}]
        found = [some for some in dict.fromkeys(grown) if not any(some < other for other in grown)]
    return tuple(sorted(tuple(sorted(some)) for some in found))


def read_bins(given: Any, where: str) -> dict[str, Any]:
    """Bins as a mapping, ``{"age": 5, "hours": [0, 35, 45]}``, or as texts, ``["age=5", "hours=0/35/45"]``.

    >>> read_bins(["age=5", "hours=0/35/45"], "set.toml") == read_bins({"age": 5, "hours": [0, 35, 45]}, "set.toml")
    True
    """
    if not isinstance(given, list | str):
        return read_mapping(given, where, "{'age': 5}")
    found: dict[str, Any] = {}
    for column, text in _split_texts(given, where, "age=5, or age=0/18/65"):
        if column in found:
            raise InvalidInput(f"{where} names column '{column}' twice")
        found[column] = parse_bins(text, where)
    return found


def read_levels(given: Any, where: str) -> dict[str, list[Any]]:
    """Declared levels: ``{income = ["low", "high"]}``, or texts as the command line has them, ``["income=low|high"]``.

    >>> read_levels(["income=low|high"], "set.toml")
    {'income': ['low', 'high']}
    """
    if not isinstance(given, list | str):
        levels = read_mapping(given, where, "{'sex': ['f', 'm']}")
        return {column: read_list(f"{where} of '{column}'", labels, "labels") for column, labels in levels.items()}
    return {column: text.split("|") for column, text in _split_texts(given, where, "income=low|high")}


def _split_texts(given: list[Any] | str, where: str, example: str) -> Iterator[tuple[str, str]]:
    for text in [given] if isinstance(given, str) else given:
        column, equals, value = text.partition("=") if isinstance(text, str) else ("", "", "")
        if not (column and equals and value):
            raise InvalidInput(f"{where} cannot be read", allowed=example)
        yield column, value


def read_set_file(path: str | Path) -> dict[str, Any]:
    """The arguments of `assess_together` that a set file holds.

    Refuses a key that it does not know, a value of another kind, and a file that is no plain TOML of a reasonable size.
    A source that is a path, or a glob, is looked for beside the set file first, and then in the working folder.
    """
    file = Path(path)
    arguments = read_set(read_settings_file(file, "the set file").values, file.name)
    if "source" not in arguments:
        raise InvalidInput(f"{file.name} has no 'source'", fix='add it: source = "people.parquet"')
    given = arguments["source"]
    require_kind(f"'source' in {file.name}", given, str)
    if not given:
        raise InvalidInput(f"'source' in {file.name} is empty", fix='name the records: source = "people.parquet"')
    if not (is_address(given) or "\0" in given or Path(given).is_absolute()):
        with suppress(OSError, ValueError, NotImplementedError):
            if (file.parent / given).exists() or any(file.parent.glob(given)):
                arguments["source"] = str(file.parent / given)
    return arguments


def read_set_text(text: str, name: str) -> dict[str, Any]:
    """Read the text of a set file in the same way. Its source may be left out, and is not looked for.

    >>> found = read_set_text('sensitive = "income"\\n[[table]]\\nqid = ["age"]', "set.toml")
    >>> found["sensitive"], found["tables"]
    ('income', [{'qid': ['age']}])
    """
    return read_set(parse_settings(text.encode(), "the set file", name), name)


def read_set(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The arguments that the values of a set file are; its source as it is written, its tables as they are."""
    for key in values:
        if key not in SET_KEYS:
            raise UnknownName(f"unknown key in {name}", got=repr(key), allowed=", ".join(SET_KEYS))
    for key, example in (("sensitive", 'sensitive = "income"'), ("table", "[[table]]")):
        if key not in values:
            raise InvalidInput(f"{name} has no '{key}'", fix=f"add it: {example}")
    if values.get("noise", "independent") != "independent":  # such as cell keys or margins of one noisy table
        raise InvalidInput(
            f"the noise of {name} is not independent: these figures hold for independent noise in every count alone",
            fix="assess the finest table by itself: what is made from it alone shows no more than it does",
            code="shared-noise",
        )
    names = {key: "table" if key == "source-table" else key.replace("-", "_") for key in values}
    arguments = {names[key]: value for key, value in values.items() if key not in READ_HERE}
    arguments["bins"] = read_bins(values.get("bin"), f"'bin' in {name}")
    arguments["levels"] = read_levels(values.get("levels"), f"'levels' in {name}")
    tables = values["table"]
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        raise InvalidInput(f"'table' in {name} must be tables", fix="write [[table]] before the keys of each")
    return {**arguments, "tables": tables}


@dataclass(frozen=True)
class Cost:
    """What a person spends who is in as many tables of the set as one can be in."""

    epsilon: float
    delta: float
    dp_definition: str
    method: str
    apart: bool
    """Whether some tables exclude each other, so that no person spends all of them."""

    @property
    def headline(self) -> str:
        at_delta = f" at delta {claim(self.delta)}" if self.delta else ""
        apart = "; tables whose people exclude each other are not added up" if self.apart else ""
        how = f"{self.dp_definition} DP, {self.method} composition{apart}"
        return f"The set costs epsilon {claim(self.epsilon)}{at_delta} ({how})."

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "sentence": self.headline}


def find_cost(mechanisms: Sequence[Mechanism], together: Sequence[tuple[int, ...]]) -> Cost:
    """The largest of what the collections of tables cost that one person can be in."""
    costs = [compose([Loss.of(mechanisms[table]) for table in tables]) for tables in together]
    largest = max(costs, key=lambda cost: (cost.epsilon, cost.delta))
    weakest = max(costs, key=lambda cost: ("pure", "approximate").index(cost.dp_definition))
    delta = max(cost.delta for cost in costs)
    return Cost(largest.epsilon, delta, weakest.dp_definition, largest.chosen.method, len(together) > 1)


def book_loss(mechanisms: Sequence[Mechanism], together: Sequence[tuple[int, ...]]) -> Loss:
    """Return what a set costs a person at most, for a ledger: the events of the tables that one person can be in."""
    unfit = [mechanism.name for mechanism in mechanisms if mechanism.name not in ("geometric", "discrete-gaussian")]
    if any(not mechanism.pure for mechanism in mechanisms) and unfit:
        raise InvalidInput(
            "a set is released with whole-number noise", got=unfit[0], allowed="geometric, discrete-gaussian"
        )
    return Loss.cover([Loss.join([Loss.of(mechanisms[table]) for table in tables]) for tables in together])


def try_ceiling(
    mechanisms: Sequence[Mechanism], together: Sequence[tuple[int, ...]], labels: int
) -> tuple[Ceiling | None, str | None]:
    """Return how often an attacker who knows all other records guesses a value correctly from all tables, at most.

    Of tables whose people exclude each other, the largest counts. Or None, and why it is not known.
    """
    found = []
    for tables in together:
        ceiling, why_not = find_ceiling(tuple(Loss.of(mechanisms[table]) for table in tables), labels)
        if ceiling is None:
            return None, why_not
        found.append(ceiling)
    worst = max(found, key=lambda ceiling: (ceiling.even_two, ceiling.even))
    return replace(worst, advantage=max(each.advantage for each in found), releases=len(mechanisms)), None
