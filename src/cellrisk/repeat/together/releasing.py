"""`release_together`: every table of a set, differentially private, as one release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cellrisk.counts.schema import read_mapping
from cellrisk.counts.tabulation import tabulate
from cellrisk.decide.policies import Policies
from cellrisk.decide.policy import Policy
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.publish.releasing import release
from cellrisk.publish.releasing.domain import Rule
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.together.costs import book_loss, find_cost, try_ceiling
from cellrisk.repeat.together.release_result import TogetherRelease
from cellrisk.repeat.together.sets import SetTable, find_together, read_tables
from cellrisk.system.checks import read_list, read_texts
from cellrisk.system.choices import MechanismName, Neighbours, OutsideRule
from cellrisk.system.progress import Progress

__all__ = ["TogetherRelease", "release_together"]

READ = ("bins", "mechanism", "epsilon", "delta", "neighbours", "threshold")
"""What is said of the tables, and not of the records."""


def release_together(
    source: Any,
    tables: Sequence[Mapping[str, Any] | SetTable],
    sensitive: str,
    *,
    bins: Mapping[str, Any] | Sequence[str] | None = None,
    levels: Mapping[str, Sequence[Any]] | None = None,
    count: str | bool | None = None,
    missing: Any = "category",
    outside: OutsideRule = "drop",
    mechanism: Mechanism | MechanismName = USUAL_MECHANISM,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
    table: str | None = None,
    engine: Any = None,
    memory_limit: str | int | None = None,
    exclude: Sequence[Rule] = (),
    may_be_missing: str | Sequence[str] = (),
    observed_levels: bool | str | Sequence[str] = (),
    clamp: bool = True,
    dense: bool | None = None,
    format: str = "parquet",
    spreadsheet_safe: bool = False,
    policy: Policy | Policies | None = None,
    progress: Progress | None = None,
) -> TogetherRelease:
    """Every table of a set, with noise of its own in every count: fit to be published together.

    Each table is what `release` makes of it, so that what is published depends on what was declared and on noise alone.
    The answer is saved into a new folder, all tables or none: by itself with ``save``, or with one entry of a ledger,
    ``ledger.save(found, "folder")``.

    Parameters
    ----------
    source, tables, sensitive, bins, mechanism, epsilon, delta, neighbours, threshold
        As for `assess_together`.
    levels, count, missing, outside, table, engine, memory_limit, progress
        As for `tabulate`; records outside the declared labels are left out unless ``outside`` says otherwise.
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
    asked = read_tables(tables, sensitive, bins, mechanism, epsilon, delta, neighbours, threshold)
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
    opened = {"count": count, "missing": missing, "outside": outside, "table": table, "engine": engine}
    counted_tables = [
        tabulate(
            source,
            each.quasi_identifiers,
            sensitive,
            bins=dict(each.bins),
            levels={name: labels for name, labels in levels.items() if name in (sensitive, *each.quasi_identifiers)},
            memory_limit=memory_limit,
            where=each.part,
            progress=progress,
            **opened,
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


def plan_loss(tables: Sequence[Mapping[str, Any] | SetTable], sensitive: str, **asked: Any) -> Loss:
    """What a set that is yet to be released would cost a person at most.

    ``asked``: what else `release_together` is asked; what is about the records is not looked at.
    """
    read = read_tables(tables, sensitive, **{name: asked[name] for name in READ if name in asked})
    return book_loss([table.mechanism for table in read], find_together(read))


def _read_columns(given: str | Sequence[str], used: Iterable[str], what: str) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else read_texts(what, given, "columns")
    strange = [name for name in names if name not in set(used)]
    if strange:
        raise InvalidInput(f"{what} names column '{strange[0]}', which no table has")
    return names
