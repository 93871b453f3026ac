"""`release_together`: every table of a set, differentially private, as one release."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cellrisk.counts.counting import tabulate
from cellrisk.counts.schema import read_mapping
from cellrisk.decide.policies import Policies, Policy
from cellrisk.errors import InvalidInput
from cellrisk.publish.releasing import release
from cellrisk.publish.releasing.domain import Rule
from cellrisk.publish.releasing.files import check_folder, sidecar_of, write_files
from cellrisk.publish.releasing.release_result import Release
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.together.sets import (
    OF_TABLES,
    OF_UNIT,
    Cost,
    SetTable,
    book_loss,
    find_cost,
    find_together,
    read_tables,
    try_ceiling,
)
from cellrisk.risk.ceilings import Ceiling
from cellrisk.system.checks import read_list, read_texts
from cellrisk.system.choices import OutsideRule
from cellrisk.system.progress import Progress
from cellrisk.system.results import Result
from cellrisk.system.version import __version__

__all__ = ["TogetherRelease", "release_together"]


@dataclass(frozen=True, eq=False, repr=False)
class TogetherRelease(Result):
    """Several tables with noise, made by `release_together`. They and everything printed with them may be published.

    ``save`` writes them, each with its description, into a new folder: all or none.
    """

    wording = "release"

    tables: tuple[SetTable, ...]
    releases: tuple[Release, ...]
    sensitive: str
    loss: Loss
    """What all of them cost a person at most."""
    cost: Cost
    ceiling: Ceiling | None
    ending: str = ".parquet"

    @property
    def quasi_identifiers(self) -> tuple[str, ...]:
        """Those of all tables."""
        return tuple(dict.fromkeys(name for table in self.tables for name in table.quasi_identifiers))

    @property
    def statements(self) -> tuple[str, ...]:
        """Return what a reader of the tables has to know of them as a set."""
        worst_case = () if self.ceiling is None else (self.ceiling.headline,)
        return self.cost.headline, *worst_case, "The tables have independent noise, so their common margins differ."

    def name_of(self, table: SetTable) -> str:
        """The file of a table in the folder."""
        return f"table-{table.number}{self.ending}"

    def to_dict(self) -> dict[str, Any]:
        """Return what is saved as the list of the tables: how they were made, and nothing of the records."""
        return {
            "cellrisk": __version__,
            "sentence": self.headline,
            "statements": list(self.statements),
            "sensitive": self.sensitive,
            "loss": self.loss.to_dict(),
            "cost": self.cost.to_dict(),
            "ceiling": None if self.ceiling is None else self.ceiling.to_dict(),
            "tables": [
                {**table.to_dict(), "file": self.name_of(table), "released": len(made.frame)}
                for table, made in zip(self.tables, self.releases, strict=True)
            ],
        }

    def check_place(self, path: str | os.PathLike[str], force: bool) -> Path:
        """Refuse a folder that cannot be made; returns where the list of the tables will stand.

        Parameters
        ----------
        path
            The folder.
        force
            Is refused: a folder is not replaced.
        """
        if force:
            raise InvalidInput("a folder of released tables is never replaced", fix="name one that is not there yet")
        return check_folder(path)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write every table, its description and the list of all into a new folder: all or none.

        Parameters
        ----------
        path
            A folder that is not there yet.
        """
        target = self.check_place(path, force=False)
        return write_files(target, *self.files(target))

    def files(self, target: Path, total: str | None = None) -> tuple[dict[str, bytes], dict[str, str]]:
        """Return what is saved in a new folder, by name: the files of the tables, their list, and the descriptions.

        The list has the digests of the files and of their descriptions. ``total``: as for one release.
        """
        listed, contents, descriptions = self.to_dict(), {}, {}
        for table, made, row in zip(self.tables, self.releases, listed["tables"], strict=True):
            name, content = row["file"], made.encode(self.ending)
            of_set = {"tables": len(self.tables), "number": table.number, "name": table.name, "where": table.where}
            described = made.describe_file(name, content, total, set=of_set)
            row["sha256"], row["description"] = (
                hashlib.sha256(each).hexdigest() for each in (content, described.encode())
            )
            contents[name], descriptions[sidecar_of(name).name] = content, described
        contents[target.name] = f"{json.dumps(listed, indent=2, ensure_ascii=False)}\n".encode()
        return contents, descriptions

    def _numbers(self) -> list[dict[str, Any]]:
        names = "epsilon", "scale", "counts"
        return [
            {"table": table.number, "figure": name, "value": float(value)}
            for table, made in zip(self.tables, self.releases, strict=True)
            for name, value in zip(names, (made.mechanism.epsilon, made.mechanism.scale, len(made.frame)), strict=True)
        ]


def release_together(
    source: Any,
    tables: Sequence[Mapping[str, Any]],
    sensitive: str,
    *,
    levels: Mapping[str, Sequence[Any]] | None = None,
    outside: OutsideRule = "drop",
    exclude: Sequence[Rule] = (),
    may_be_missing: str | Sequence[str] = (),
    observed_levels: bool | str | Sequence[str] = (),
    clamp: bool = True,
    dense: bool | None = None,
    format: str = "parquet",
    spreadsheet_safe: bool = False,
    policy: Policy | Policies | None = None,
    progress: Progress | None = None,
    **given: Any,
) -> TogetherRelease:
    """Every table of a set, with noise of its own in every count: fit to be published together.

    Each table is what `release` makes of it, so that what is published depends on what was declared and on noise alone.
    The answer is saved into a new folder, all tables or none: by itself with ``save``, or with one entry of a ledger,
    ``ledger.save(found, "folder")``.

    Parameters
    ----------
    source, tables, sensitive, levels, progress, given
        As for `assess_together`, with the arguments of the tables and of their records.
    outside
        As for `tabulate`; records outside the declared labels are left out unless it says otherwise.
    exclude, may_be_missing, observed_levels
        As for `release`, for those tables that have the columns.
    clamp, dense, spreadsheet_safe, policy
        As for `release`.
    format
        "parquet" or "csv".

    >>> import pandas
    >>> people = pandas.DataFrame({"sex": list("ffmm"), "town": list("abab"), "job": list("xyyy")})
    >>> levels = {"sex": ["f", "m"], "town": ["a", "b"], "job": ["x", "y"]}
    >>> found = release_together(people, [{"qid": "sex"}, {"qid": "town"}], "job", levels=levels, epsilon=1.0)
    >>> found.loss.describe(), [len(each.frame) for each in found.releases]
    ('2-DP', [4, 4])
    """
    unit = {name: given[name] for name in OF_UNIT if name in given}
    asked = read_tables(tables, sensitive, **{name: given.pop(name) for name in OF_TABLES if name in given}, **unit)
    if format not in ("parquet", "csv"):
        raise InvalidInput("unknown format of released counts", got=repr(format), allowed="parquet, csv")
    levels = {
        name: read_list(f"levels of '{name}'", labels, "labels")
        for name, labels in read_mapping(levels, "levels", "{'sex': ['f', 'm']}").items()
    }
    exclude = read_list("exclude", exclude, "combinations")
    used = {sensitive, *(name for each in asked for name in each.quasi_identifiers)}
    filtered = {name for each in asked for name in each.part.columns}
    unknown = [name for name in levels if name not in used | filtered]
    if unknown:
        raise InvalidInput(f"levels are given for column '{unknown[0]}', which no table has")
    missing_columns = _read_columns(may_be_missing, used, "may_be_missing")
    observed = observed_levels
    if not isinstance(observed, bool):
        observed = _read_columns(observed, used, "observed")
    for rule in exclude:
        if not isinstance(rule, Mapping):
            raise InvalidInput("a rule of 'exclude' maps columns to values", got=type(rule).__name__)
        if not any({*rule} <= {sensitive, *each.quasi_identifiers} for each in asked):
            raise InvalidInput("no table has all columns of a rule of 'exclude'", got=", ".join(map(str, rule)))
    policies = Policies.in_force(policy)
    mechanisms, together = [each.mechanism for each in asked], find_together(asked)
    cost, declared = find_cost(mechanisms, together), levels.get(sensitive)
    ceiling, _ = try_ceiling(mechanisms, together, max(len(declared), 2) if declared else 2)
    policies.forbid_joint("all tables together", cost.epsilon, 1.0 if ceiling is None else ceiling.even_two)
    counted_tables = [
        tabulate(
            source,
            each.quasi_identifiers,
            sensitive,
            bins=dict(each.bins),
            levels={name: labels for name, labels in levels.items() if name in (sensitive, *each.quasi_identifiers)},
            where=each.part,
            outside=outside,
            progress=progress,
            **given,
        )
        for each in asked
    ]
    for each, counted in zip(asked, counted_tables, strict=True):  # all are judged before noise is drawn for any
        policies.forbid(counted, each.mechanism, sensitive)
    made = []
    for each, counted in zip(asked, counted_tables, strict=True):
        own = {sensitive, *each.quasi_identifiers}
        made.append(
            release(
                counted,
                each.mechanism,
                exclude=[rule for rule in exclude if set(rule) <= own],
                may_be_missing=[name for name in missing_columns if name in own],
                observed_levels=observed if isinstance(observed, bool) else [name for name in observed if name in own],
                clamp=clamp,
                dense=dense,
                spreadsheet_safe=spreadsheet_safe,
                policy=policy,
                progress=progress,
            )
        )
    loss = book_loss(mechanisms, together)
    return TogetherRelease(asked, tuple(made), sensitive, loss, cost, ceiling, f".{format}")


def plan_loss(tables: Sequence[Mapping[str, Any]], sensitive: str, **asked: Any) -> Loss:
    """Return what a set that is yet to be released would cost a person at most.

    ``asked``: what else `release_together` is asked; what is about the records is not looked at.
    """
    read = read_tables(tables, sensitive, **{name: asked[name] for name in (*OF_TABLES, *OF_UNIT) if name in asked})
    return book_loss([table.mechanism for table in read], find_together(read))


def _read_columns(given: str | Sequence[str], used: Iterable[str], what: str) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else read_texts(what, given, "columns")
    strange = [name for name in names if name not in set(used)]
    if strange:
        raise InvalidInput(f"{what} names column '{strange[0]}', which no table has")
    return names
