"""Files to be downloaded, written in worker processes: the report, the curve, the release."""

from __future__ import annotations

import re
import secrets
import zipfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import cellrisk as cr
from cellrisk.errors import InvalidInput
from cellrisk.system.spreadsheets import tell_formulas
from cellrisk.web import requests
from cellrisk.web.answers import Given
from cellrisk.web.jobs import Report


@dataclass(frozen=True)
class Written:
    """A file to be downloaded, and the sentences that the page shows beside it."""

    path: str
    sentence: str
    remark: str | None = None


def write_file(report: Report, given: Given, asked: requests.Setting, folder: str) -> Written:
    """Write what is asked for, as the command line does."""
    if asked.kind == "report":
        return _write_report(report, given, asked, Path(folder))
    if given.perturbation is not None:
        raise InvalidInput("a perturbation has a report alone: it has no epsilon", code="no-epsilon")
    return (_write_release if asked.kind == "release" else _write_curve)(report, given, asked, Path(folder))


def _write_report(report: Report, given: Given, asked: requests.Setting, folder: Path) -> Written:
    """Write the report for a board."""
    method: dict[str, Any] = {"epsilon": asked.epsilon, "neighbours": asked.neighbours}
    if given.perturbation is not None:
        method = {"perturbation": given.perturbation}
    document = cr.report(
        given.keyed,
        asked.mechanism,
        **method,
        **asked.limits,
        **asked.risk,
        delta=given.delta(asked.mechanism, asked.delta) or None,
        title=asked.title,
        organisation=asked.organisation,
        policy=given.policies,
        source=given.recipe.name,
        preparation=given.recipe.preparation(given.sensitive),
        progress=partial(report, "writing the report"),
    )
    return Written(str(document.save(folder / f"{stem(given.recipe.name)}-report.html")), document.headline)


def _write_curve(report: Report, given: Given, asked: requests.Setting, folder: Path) -> Written:
    """Write the curve as numbers or as a picture."""
    curve = cr.curve(
        given.table,
        asked.mechanism,
        delta=given.delta(asked.mechanism, asked.delta) or None,
        neighbours=asked.neighbours,
        measures=[asked.measure],
        progress=partial(report, "computing the risks"),
    )
    target = folder / f"{stem(given.recipe.name)}-{asked.kind}"
    if asked.kind == "curve.svg":
        return Written(str(curve.plot(target)), curve.headline)
    written = curve.to_csv(target, spreadsheet_safe=asked.spreadsheet_safe)
    return Written(str(written), curve.headline, tell_formulas(written))


def _write_release(report: Report, given: Given, asked: requests.Setting, folder: Path) -> Written:
    """Write the release and its description into one archive.

    With a ledger, release and entry are written together or not at all, and the release also stays in the folder of
    releases.
    """
    table, mechanism = given.keyed, given.mechanism(asked)
    draw = partial(
        cr.release,
        table,
        mechanism,
        sensitive=given.sensitive,
        policy=given.policies,
        disclosures=given.remarks(asked),
        observed_levels=asked.observed_levels,
        observed_cells_only=asked.observed_cells_only,
        spreadsheet_safe=asked.spreadsheet_safe,
        progress=partial(report, "releasing"),
    )
    given.policies.forbid(table, mechanism, given.sensitive)  # before anything is drawn
    name = f"{stem(given.recipe.name)}-release"
    if given.ledger is None:
        target = folder / f"{name}.csv"
        released = draw()
        released.save(target)
    else:
        if not (asked.purpose and asked.cohort):
            raise InvalidInput("the ledger needs to know why this is released, and about whom", fix="give both")
        entry: dict[str, Any] = {"purpose": asked.purpose, "cohort": asked.cohort, "new_cohort": asked.new_cohort}
        releases = Path(given.releases)
        releases.mkdir(exist_ok=True)
        target = releases / f"{name}-{secrets.token_hex(4)}.csv"
        with cr.Ledger(given.ledger) as ledger:
            ledger.check(mechanism, asked.cohort, new_cohort=asked.new_cohort)
            released = draw()
            ledger.save(released, target, **entry)
    archive = folder / f"{name}.zip"
    with zipfile.ZipFile(archive, "x", zipfile.ZIP_DEFLATED) as packed:
        for path in (target, Path(f"{target}.json")):
            packed.write(path, path.name)
            if given.ledger is None:
                path.unlink()
    return Written(str(archive), released.headline, released.formulas)


def stem(name: str) -> str:
    """Return the name of a file without folders, ending and letters that a system may not like.

    >>> stem("2024/people (new).csv.gz")
    'people-new'
    """
    last = name.rpartition("/")[2].partition(".")[0]
    return re.sub(r"[^A-Za-z0-9_]+", "-", last).strip("-")[:60] or "table"
