"""The work of worker processes on sets of tables: a set file is read, and the set assessed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any

from pydantic import ValidationError

from cellrisk.counts.files import check_unpacked
from cellrisk.decide.policies import Policies
from cellrisk.errors import InvalidInput
from cellrisk.repeat.together import assess_together
from cellrisk.repeat.together.judging import find_policy_breaches, list_certainties
from cellrisk.repeat.together.set_file import read_set_text
from cellrisk.repeat.together.sets import read_tables
from cellrisk.repeat.together.together_result import SAYS, TableFigures, TogetherAssessment
from cellrisk.web.boxes import in_words_of_boxes, known_as
from cellrisk.web.commands import find_arguments
from cellrisk.web.jobs import TellProgress
from cellrisk.web.request_models import SetChoice

LEFT_ASIDE = {"engine": "engine", "table": "source-table", "memory_limit": "memory-limit"}
"""Arguments that a page has no box for, and their keys in a set file."""
FILE_KEYS = {"tables": "table", "quasi_identifiers": "qid", "bins": "bin"}
LONGEST_SOURCE = 200
SAME = ("mechanism", "epsilon", "delta", "threshold")


def assess_set(
    report: TellProgress,
    path: str,
    name: str,
    choice: SetChoice,
    policy: Policies,
    unpacked_limit: int | None = None,
) -> dict[str, Any]:
    """What the tables of a set give away together, as `assess_together` tells it."""

    def tell(share: float | None) -> None:
        done = share is not None and share >= 1.0
        report("putting the tables together" if done else "counting the people", None if done else share)

    report("counting the people", None)
    with in_words_of_boxes(), known_as(path, name):
        check_unpacked(path, unpacked_limit)
        certainties = list_certainties(policy, ())
        found = assess_together(path, **find_arguments(choice), certainty=certainties or None, progress=tell)
    return describe_set(found, policy)


def describe_set(found: TogetherAssessment, policies: Policies) -> dict[str, Any]:
    """An assessment as the page shows it, in the words that the command prints."""
    several = [found.collections.get(tuple(range(1, number + 1))) for number in range(1, len(found.tables) + 1)]
    return {
        "sentence": found.headline,
        "sensitive": found.sensitive,
        "records": found.records,
        "labels": found.labels,
        "rules": [{**each.to_dict(), "says": SAYS[each.rule]} for each in found.rules],
        "interval": found.say_interval(),
        "tables": [_describe_table(each, found) for each in found.tables],
        "parts": found.say_parts(),
        "ceiling": None if found.ceiling is None else found.ceiling.even_two,
        "nobody": found.say_ceiling(),
        "epsilon": found.cost.epsilon,
        "delta": found.cost.delta,
        "cost": found.cost.headline,
        "growth": [
            {"tables": number, "right": each.right, "caused": each.caused}
            for number, each in enumerate(several, start=1)
            if each is not None
        ],
        "differences": [each.headline for each in found.differences],
        "least_squares": None if found.refinement is None else found.refinement.headline,
        "statements": list(found.statements),
        "policy": policies.describe() if policies else None,
        "above": list(find_policy_breaches(found, policies)),
    }


def _describe_table(each: TableFigures, found: TogetherAssessment) -> dict[str, Any]:
    table, lead, rest = each.table, found.rule(), each.without
    mechanism = table.mechanism
    return {
        "number": table.number,
        "title": table.name or table.describe(),
        "described": table.describe(),
        "mechanism": mechanism.name,
        "epsilon": mechanism.epsilon,
        "delta": 0.0 if mechanism.pure else mechanism.delta,
        "threshold": mechanism.threshold,
        "records": each.records,
        "cells": each.cells,
        "alone": each.alone.to_dict(),
        "ceiling": None if each.ceiling is None else each.ceiling.even_two,
        "without": None
        if rest is None
        else {
            "right": rest.right,
            "caused": rest.caused,
            "adds_right": lead.right - rest.right,
            "adds_caused": lead.caused - rest.caused,
        },
    }


def read_set(report: TellProgress, text: str, name: str) -> dict[str, Any]:
    """What a set file holds, for the boxes of the page. Nothing that it names is opened."""
    report("reading the set file", None)
    with in_words_of_boxes():
        asked = read_set_text(text, name)
        shared = {key: asked[key] for key in (*SAME, "neighbours") if key in asked}
        tables = read_tables(asked["tables"], asked["sensitive"], bins=asked["bins"], **shared)
    own = [
        {
            **{key: given[key] for key in ("name", *SAME) if key in given},
            "quasi_identifiers": list(table.quasi_identifiers),
            "bins": {column: _write_bins(bins) for column, bins in table.bins.items()},
            "where": _plain(given["where"]) if "where" in given else None,
        }
        for given, table in zip(asked["tables"], tables, strict=True)
    ]
    chosen: dict[str, Any] = {key: asked[key] for key in ("sensitive", "count", "missing", "outside") if key in asked}
    chosen |= {**shared, "tables": own, "levels": _plain(asked["levels"]), "neighbours": tables[0].mechanism.neighbours}
    if chosen.get("count") == "none":
        chosen["count"] = False
    try:
        valid = SetChoice.model_validate(chosen)
    except ValidationError as refusal:
        raise InvalidInput(_describe_flaw(refusal, name)) from None
    source = asked.get("source")
    return {
        "chosen": valid.model_dump(),
        "source": None if source is None else source[:LONGEST_SOURCE],
        "left_aside": [key for argument, key in LEFT_ASIDE.items() if argument in asked],
    }


def _describe_flaw(refusal: ValidationError, name: str) -> str:
    """What is wrong, and where in the file; never the value."""
    flaw = refusal.errors(include_input=False, include_url=False, include_context=False)[0]
    place = [str(part) for part in flaw["loc"]]
    where = name
    if place[0] == "tables" and len(place) > 2:
        where, place = f"table {int(place[1]) + 1} of {name}", place[2:]
    return f"'{FILE_KEYS.get(place[0], place[0])}' in {where}: {flaw['msg'].lower()}"


def _write_bins(given: Any) -> str:
    """Bins as a box holds them: a width, or edges between slashes."""
    numbers = given if isinstance(given, list | tuple) else [given]
    return "/".join(repr(each) for each in numbers)


def _plain(given: Any) -> Any:
    """The same without dates and times, which JSON does not have: columns hold them as texts spell them."""
    if isinstance(given, Mapping):
        return {key: _plain(value) for key, value in given.items()}
    if isinstance(given, list):
        return [_plain(value) for value in given]
    return str(given) if isinstance(given, date | datetime | time) else given
