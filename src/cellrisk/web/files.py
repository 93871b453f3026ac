"""Files to be downloaded, written in worker processes: the report and the release."""

from __future__ import annotations

import re
import secrets
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import cellrisk as cr
from cellrisk.errors import InvalidInput
from cellrisk.show.wording.release import say_formulas
from cellrisk.web import requests
from cellrisk.web.answers import Given
from cellrisk.web.jobs import Report


def write_report(report: Report, given: Given, asked: requests.Setting, folder: str) -> dict[str, str]:
    """Write the report for a board."""
    document = cr.report(
        given.keyed,
        asked.mechanism,
        epsilon=asked.epsilon,
        neighbours=asked.neighbours,
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
    path = document.save(Path(folder) / f"{stem(given.recipe.name)}-report.html")
    return {"path": str(path), "sentence": document.headline}


def write_release(report: Report, given: Given, asked: requests.Setting, folder: str) -> dict[str, str]:
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
        target = Path(folder) / f"{name}.csv"
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
    archive = Path(folder) / f"{name}.zip"
    with zipfile.ZipFile(archive, "x", zipfile.ZIP_DEFLATED) as packed:
        for path in (target, Path(f"{target}.json")):
            packed.write(path, path.name)
            if given.ledger is None:
                path.unlink()
    return {"path": str(archive), "sentence": released.headline, "remark": " ".join(say_formulas(released))}


def stem(name: str) -> str:
    """Return the name of a file without folders, ending and letters that a system may not like.

    >>> stem("2024/people (new).csv.gz")
    'people-new'
    """
    last = name.rpartition("/")[2].partition(".")[0]
    return re.sub(r"[^A-Za-z0-9_]+", "-", last).strip("-")[:60] or "table"
