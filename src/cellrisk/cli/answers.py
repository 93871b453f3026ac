"""How a command ends: what it prints, and the exit code of a limit that is not kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from cellrisk.errors import visible
from cellrisk.system.text import CURATOR_NOTE
from cellrisk.system.writing import check_writable

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable
    from cellrisk.decide.policies import Policies
    from cellrisk.noise.mechanisms import Mechanism
    from cellrisk.noise.perturbations import Perturbation

ABOVE_LIMIT = 3


def say(text: str, err: bool = False) -> None:
    """Prints for people, or for programs as JSON: with nothing in it that a terminal would obey or hide."""
    typer.echo(visible(text), err=err)


def say_either(document: dict[str, Any], text: str, as_json: bool) -> None:
    """Prints one JSON document for programs, or its text for people."""
    say(json.dumps(document, allow_nan=False, ensure_ascii=False) if as_json else text)


def answer(
    result: Any,
    as_json: bool,
    checks: Mapping[str, Any] | None = None,
    raw: bool = True,
    policies: Policies | None = None,
) -> None:
    """Prints a result, and the checks of it: sentences and tables, or one JSON document.

    What was computed from ``raw`` data carries the note that it is for the curator. ``policies``: those that were
    obeyed, where the result does not say so itself; JSON says also where there was none.
    """
    if as_json:
        checked = {"check": {name: check.to_dict() for name, check in checks.items()}} if checks else {}
        note = {"note": CURATOR_NOTE} if raw else {}
        policy = {} if policies is None else {"policy": policies.to_dict()}
        say_either({**result.to_dict(), **checked, **policy, **note}, "", as_json)
        return
    text = "\n\n".join([str(result), *(str(check) for check in (checks or {}).values())])
    text += f"\n\n{policies.describe()}" if policies else ""
    say(f"{text}\n\n{CURATOR_NOTE}" if raw and CURATOR_NOTE not in text else text)


def check_outputs(plot: str | None, csv: str | None = None) -> None:
    """Refuses a path that cannot be written before the work begins."""
    if plot is not None:
        from cellrisk.show.pictures import check_picture_path

        check_picture_path(plot)
    if csv is not None:
        check_writable(csv)


def tell_formulas(path: Path) -> None:
    """One line on standard error, where a spreadsheet would take cells of a CSV file for formulas."""
    from cellrisk.system import spreadsheets

    said = spreadsheets.tell_formulas(path)
    if said is not None:
        say(f"cellrisk: {said}", err=True)


def stop_above_limit(message: str) -> NoReturn:
    """One line on standard error, and the exit code of a limit that is not kept."""
    say(f"cellrisk: {message}", err=True)
    raise typer.Exit(ABOVE_LIMIT)


def obey(policies: Policies, table: FrequencyTable, mechanism: Mechanism | Perturbation) -> None:
    """Stops where the mechanism or the perturbation breaks a policy on this table."""
    breaches = policies.breaches(table, mechanism)
    if breaches:
        stop_above_limit("; ".join(breaches))
