"""A set of tables as it is asked for: what each is of, how its noise is made, and what cannot be assessed together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, cast

from cellrisk.counts.filters import Part, read_part
from cellrisk.counts.joint import Asked
from cellrisk.counts.schema import read_mapping, read_names
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.noise.mechanisms import mechanism as make_mechanism
from cellrisk.system.checks import require_kind
from cellrisk.system.words import MechanismName, Neighbours

MOST_TABLES = 20
TABLE_KEYS = ("name", "qid", "bin", "where", "mechanism", "epsilon", "delta", "threshold")
PYTHON_KEYS = {"quasi_identifiers": "qid", "bins": "bin"}
"""Other names of the same, as Python functions have them."""
NOT_INDEPENDENT = {
    "shared": "one draw of noise in several tables",
    "cell-key": "cell keys, which give the same people the same noise in every table",
    "margins": "margins of one noisy table, whose noise is that of its cells",
    "consistent": "tables that were made consistent with each other",
}
INDEPENDENT = "these figures hold for independent noise in every count alone"


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
        """How it is called in what is printed."""
        return f"table {self.number}" if self.name is None else f'"{self.name}"'

    @property
    def where(self) -> str | None:
        """The people in it, in words; None where everybody is."""
        return self.part.describe() if self.part else None

    @property
    def asked(self) -> Asked:
        return Asked(self.quasi_identifiers, self.bins, self.part)

    @cached_property
    def content(self) -> tuple[Any, ...]:
        """What it is a table of; two tables with the same content are one table."""
        return frozenset(self.asked.columns()), frozenset(self.part.conditions)

    def describe(self) -> str:
        """Its columns, and the people in it where not everybody is."""
        part = f"; {self.where}" if self.where else ""
        return f"{', '.join(self.quasi_identifiers)}{part}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "name": self.name,
            "quasi_identifiers": list(self.quasi_identifiers),
            "bins": {
                name: list(given) if isinstance(given, list | tuple) else given for name, given in self.bins.items()
            },
            "where": self.where,
            "mechanism": self.mechanism.to_dict(),
        }


def read_tables(
    tables: Sequence[Mapping[str, Any] | SetTable],
    sensitive: str,
    *,
    bins: Mapping[str, Any] | Sequence[str] | None = None,
    mechanism: Mechanism | MechanismName = USUAL_MECHANISM,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
) -> tuple[SetTable, ...]:
    """The tables of a set; what one does not say of itself is what all share. Refuses what cannot be assessed."""
    if isinstance(tables, str | Mapping) or not isinstance(tables, Sequence):
        raise InvalidInput("tables must be a list", got=f"a {type(tables).__name__}", allowed='[{"qid": ["age"]}, ...]')
    if not 1 <= len(tables) <= MOST_TABLES:
        raise InvalidInput(
            "a set needs at least one table, and not too many",
            got=f"{len(tables)} tables",
            allowed=f"1 to {MOST_TABLES}",
        )
    require_kind("sensitive", sensitive, str)
    shared_bins = _read_bins(bins, "bins")
    shared = {"mechanism": mechanism, "epsilon": epsilon, "delta": delta, "threshold": threshold}
    made = tuple(
        _read_table(number, given, sensitive, shared_bins, shared, neighbours)
        for number, given in enumerate(tables, start=1)
    )
    used = {name for table in made for name in table.quasi_identifiers}
    unused = [name for name in shared_bins if name not in used]
    if unused:
        raise InvalidInput(f"bins are given for column '{unused[0]}', which no table has")
    _refuse_twins(made)
    _refuse_neighbours(made)
    return made


def _read_table(
    number: int,
    given: Mapping[str, Any] | SetTable,
    sensitive: str,
    shared_bins: Mapping[str, Any],
    shared: Mapping[str, Any],
    neighbours: Neighbours | None,
) -> SetTable:
    whose = f"table {number}"
    if isinstance(given, SetTable):
        return SetTable(number, given.quasi_identifiers, given.bins, given.part, given.mechanism, given.name)
    if not isinstance(given, Mapping):
        raise InvalidInput(f"{whose} of the set must be a mapping", got=f"a {type(given).__name__}")
    said = {PYTHON_KEYS.get(str(key), str(key)): value for key, value in given.items()}
    refuse_shared_noise(said.pop("noise", None), whose)
    other = said.pop("sensitive", sensitive)
    if other != sensitive:
        raise InvalidInput(
            f"{whose} has a sensitive attribute of its own: a set is about one",
            fix="assess a set for each attribute, or several attributes along a ledger: cellrisk ledger risk",
        )
    own_neighbours = said.pop("neighbours", neighbours)
    unknown = [key for key in said if key not in TABLE_KEYS]
    if unknown:
        raise UnknownName(f"unknown key in {whose} of the set", got=repr(unknown[0]), allowed=", ".join(TABLE_KEYS))
    if "qid" not in said:
        raise InvalidInput(f"{whose} of the set names no quasi-identifiers", fix='give them: qid = ["age", "sex"]')
    name = said.get("name")
    if name is not None and (not isinstance(name, str) or not 0 < len(name) <= 100):
        raise InvalidInput(f"the name of {whose} must be a text", allowed="1 to 100 characters")
    quasi = read_names(said["qid"], f"qid of {whose}")
    if sensitive in quasi:
        raise InvalidInput(f"'{sensitive}' cannot be both a quasi-identifier of {whose} and sensitive")
    own_bins = _read_bins(said.get("bin"), f"bins of {whose}")
    strange = [column for column in own_bins if column not in quasi]
    if strange:
        raise InvalidInput(f"bins are given for column '{strange[0]}', which {whose} does not have")
    bins = {column: {**shared_bins, **own_bins}[column] for column in quasi if column in {*shared_bins, *own_bins}}
    described = {key: said.get(key, value) for key, value in shared.items()}
    if isinstance(described["mechanism"], Mechanism) and "mechanism" in said:  # the shared numbers are not about it
        described = {"mechanism": described["mechanism"]} | {key: said.get(key) for key in shared if key != "mechanism"}
        own_neighbours = given.get("neighbours")
    found = SetTable(
        number, quasi, bins, read_part(said.get("where"), whose), _make(described, own_neighbours, whose), name
    )
    found.asked.columns()  # refuses bins that cannot be
    return found


def _read_bins(given: Any, what: str) -> dict[str, Any]:
    """Bins as Python gives them, ``{"age": 5}``, or as a set file does, ``["age=5"]``."""
    return read_bins(given, what) if isinstance(given, list | str) else read_mapping(given, what, "{'age': 5}")


def _make(described: dict[str, Any], neighbours: Any, whose: str) -> Mechanism:
    named: Any = described.pop("mechanism")
    if not isinstance(named, Mechanism | str):
        raise InvalidInput(f"the mechanism of {whose} must be a name", got=f"a {type(named).__name__}")
    if not isinstance(named, Mechanism) and described.get("epsilon") is None:
        raise InvalidInput(f"no epsilon was given for {whose}", fix="give it for the table, or once for all of them")
    try:
        return make_mechanism(cast(Any, named), neighbours=neighbours, **described)
    except (InvalidInput, UnknownName) as refusal:
        raise refusal.within(f"the mechanism of {whose}") from None


def refuse_shared_noise(given: Any, whose: str) -> None:
    """Refuses noise that several tables share, with the reason."""
    if given is None or given == "independent":
        return
    if given not in tuple(NOT_INDEPENDENT):
        got = repr(given) if isinstance(given, str) else f"a {type(given).__name__}"
        raise UnknownName(f"unknown kind of noise in {whose}", got=got, allowed="independent")
    raise InvalidInput(
        f"the noise of {whose} is not independent: {NOT_INDEPENDENT[given]}; {INDEPENDENT}",
        fix="assess the finest table by itself: what is made from it alone shows no more than it does",
    )


def _refuse_twins(tables: Sequence[SetTable]) -> None:
    for first, second in combinations(tables, 2):
        if first.content == second.content:
            raise same_table_twice(first, second)


def same_table_twice(first: SetTable, second: SetTable) -> InvalidInput:
    return InvalidInput(
        f"{first.title} and {second.title} are the same table, released twice: an attacker averages the noise away",
        fix="leave one out, and ask what repeating it reveals: cellrisk average ... --releases 2",
    )


def _refuse_neighbours(tables: Sequence[SetTable]) -> None:
    kinds = {table.mechanism.neighbours for table in tables}
    if len(kinds) > 1:
        raise InvalidInput(
            "the tables of a set have different neighbours, so that their guarantees cannot be added up",
            got=" and ".join(sorted(kinds)),
            fix="state all under the same: epsilon under add-remove is 2 epsilon under replace",
        )


def find_together(tables: Sequence[SetTable]) -> tuple[tuple[int, ...], ...]:
    """The largest collections of tables, by their places, that one person can be in: parts that exclude each other are
    told from their conditions, never from the records.

    >>> women, men = ({"qid": "age", "where": {"sex": sex}, "epsilon": 1.0} for sex in "fm")
    >>> find_together(read_tables([women, men, {"qid": "town", "epsilon": 1.0}], "job"))
    ((0, 2), (1, 2))
    """
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
    """Bins as a list of texts, ``["age=5", "hours=0/35/45"]``, or as a table, ``{age = 5, hours = [0, 35, 45]}``.

    >>> read_bins(["age=5", "hours=0/35/45"], "set.toml") == read_bins({"age": 5, "hours": [0, 35, 45]}, "set.toml")
    True
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {column: _read_bin(column, value, where) for column, value in given.items()}
    found: dict[str, Any] = {}
    for text in [given] if isinstance(given, str) else require(given, list, "bin", where):
        column, equals, bins = require(text, str, "bin", where).partition("=")
        if not (column and equals and bins):
            raise InvalidInput(f"'bin' in {where} cannot be read", got=repr(text), allowed="age=5, or age=0/18/65")
        if column in found:
            raise InvalidInput(f"'bin' in {where} names column '{column}' twice")
        found[column] = _read_bin(column, [_as_number(part, where) for part in bins.split("/")], where)
    return found


def _read_bin(column: str, given: Any, where: str) -> Any:
    numbers = given if isinstance(given, list) else [given]
    for number in numbers:
        require_number(number, f"bin of {column}", where)
    return numbers[0] if len(numbers) == 1 else numbers


def _as_number(text: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise InvalidInput(
            f"'bin' in {where} must hold numbers", got=repr(text), allowed="age=5, or age=0/18/65"
        ) from None
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def read_levels(given: Any, where: str) -> dict[str, list[Any]]:
    """Declared levels: ``{income = ["low", "high"]}``, or texts as the command line has them, ``["income=low|high"]``.

    >>> read_levels(["income=low|high"], "set.toml")
    {'income': ['low', 'high']}
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {column: list(require(values, list, f"levels of {column}", where)) for column, values in given.items()}
    found: dict[str, list[Any]] = {}
    for text in [given] if isinstance(given, str) else require(given, list, "levels", where):
        column, equals, levels = require(text, str, "levels", where).partition("=")
        if not (column and equals and levels):
            raise InvalidInput(f"'levels' in {where} cannot be read", got=repr(text), allowed="income=low|high")
        found[column] = levels.split("|")
    return found


def require(given: Any, kind: type, key: str, where: str) -> Any:
    """The value, of that kind; refuses another without telling it."""
    if not isinstance(given, kind):
        named = "text" if kind is str else "list"
        raise InvalidInput(f"'{key}' in {where} must be a {named}", got=f"a {type(given).__name__}")
    return given


def require_number(given: Any, key: str, where: str) -> Any:
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise InvalidInput(f"'{key}' in {where} must be a number", got=f"a {type(given).__name__}")
    if not abs(given) < 1e300:
        raise InvalidInput(f"'{key}' in {where} must be a number", got="one that is not finite, or too large")
    return given
