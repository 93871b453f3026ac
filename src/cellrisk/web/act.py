"""What is taken away: commands, the report, and the release with what speaks against it; and the ledger."""

from __future__ import annotations

import re
import secrets
import shlex
import zipfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import cellrisk as cr
from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.show.wording.release import say_formulas
from cellrisk.system.formatting import claim, make_sentence
from cellrisk.web.answers import Given
from cellrisk.web.fields import Setting, name_field
from cellrisk.web.jobs import Report
from cellrisk.web.tables import PEOPLE, Recipe

NO_OPTION = "# A column of this table has a name that no option can hold; use cr.tabulate in Python.\n"


def write_commands(report: Report, given: Given, asked: Setting) -> dict[str, str]:
    """The table's assessment, the curve, the choice if there is a limit, and the report."""
    recipe, sensitive, limits = given.recipe, given.sensitive, asked.limits
    delta = given.delta(asked.mechanism, asked.delta)
    method = _options({"mechanism": asked.mechanism, **({"delta": delta} if delta else {})})
    method += [] if asked.neighbours == "add-remove" else ["--neighbours", asked.neighbours]
    epsilon = _options({"epsilon": asked.epsilon})
    harmful = _options({name: ",".join(map(as_field, values)) for name, values in asked.attacker.items()})
    choosing = _options({**limits, **(asked.risk if {"max_risk", "margin"} & set(limits) else {})})
    lines = [
        ["assess", *method, *epsilon, *harmful],
        ["curve", *method, "--measure", asked.measure, "--csv", "curve.csv", "--plot", "curve.svg"],
        *([["choose", *method, *choosing, *harmful]] if limits else []),
        ["report", *method, *epsilon, *_options({**asked.risk, **limits}), *harmful, "--output", "report.html"],
    ]
    path = f"./{recipe.command}" if recipe.command.startswith("-") else recipe.command
    table = [path, *_table_options(recipe, sensitive)]
    names = [*recipe.choice.quasi_identifiers, sensitive]
    unusable = any("=" in name for name in recipe.bins(sensitive)) or re.search(r"[\r\n]", "".join(names))
    written = [shlex.join(["cellrisk", command, *table, *options]) for command, *options in lines]
    return {"shell": (NO_OPTION if unusable else "") + "\n".join(written) + "\n"}


def _options(given: Mapping[str, Any]) -> list[str]:
    """Return arguments of Python as options of the command line.

    >>> _options({"max_risk": 0.1, "form": "tight", "epsilon": 1.0})
    ['--max-risk', '0.1', '--form', 'tight', '--epsilon', '1']
    """
    pairs = [(f"--{name.replace('_', '-')}", str(value).removesuffix(".0")) for name, value in given.items()]
    return [part for pair in pairs for part in pair]


def _table_options(recipe: Recipe, sensitive: str) -> Iterator[str]:
    choice = recipe.choice
    yield from ("--qid", ",".join(map(as_field, choice.quasi_identifiers)), "--sensitive", as_field(sensitive))
    for name, text in recipe.bins(sensitive).items():
        yield from ("--bin", f"{name}={text}")
    if choice.count is not None:
        yield from ("--count", choice.count or "none")
    if choice.missing != "category":
        yield from ("--missing", choice.missing)
    yield from _options(choice.model_dump(include=PEOPLE, exclude_none=True))


def as_field(name: str) -> str:
    """Return a column's name as one field of an option that takes several, comma-separated.

    >>> print(as_field("age"), as_field("salary, yearly"))
    age "salary, yearly"
    """
    plain = re.fullmatch(r'[^\s",]([^",\r\n]*[^\s",])?', name)
    return name if plain else '"' + name.replace('"', '""') + '"'


def write_report(report: Report, given: Given, asked: Setting, folder: str) -> dict[str, str]:
    """Write the report for a board."""
    prepared = [f"{name} in bins: {text}" for name, text in given.recipe.bins(given.sensitive).items()]
    how: Any = asked.model_dump(include={"epsilon", "neighbours", "title", "organisation"})
    how |= {**asked.limits, **asked.risk, **asked.attacker, "policy": given.policies, "source": given.recipe.name}
    how |= {"delta": given.delta(asked.mechanism, asked.delta) or None, "preparation": prepared}
    document = cr.report(given.keyed, asked.mechanism, **how, progress=partial(report, "writing the report"))
    path = document.save(Path(folder) / f"{stem(given.recipe.name)}-report.html")
    return {"path": str(path), "sentence": document.headline}


def write_release(report: Report, given: Given, asked: Setting, folder: str) -> dict[str, str]:
    """Write the release and its description into one archive.

    With a ledger, release and entry are written together or not at all, and the release also stays in the folder of
    releases.
    """
    table, mechanism = given.keyed, given.mechanism(asked)
    how: Any = asked.model_dump(include={"observed_levels", "spreadsheet_safe"})
    how |= {"sensitive": given.sensitive, "policy": given.policies, "disclosures": given.remarks(asked)}
    draw = partial(cr.release, table, mechanism, **how, progress=partial(report, "releasing"))
    given.policies.forbid(table, mechanism, given.sensitive)  # before anything is drawn
    name = f"{stem(given.recipe.name)}-release"
    if given.ledger is None:
        target = Path(folder) / f"{name}.csv"
        released = draw()
        released.save(target)
    else:
        if not (asked.purpose and asked.cohort):
            raise InvalidInput("the ledger needs to know why this is released, and about whom", fix="give both")
        releases = Path(given.releases)
        releases.mkdir(exist_ok=True)
        target = releases / f"{name}-{secrets.token_hex(4)}.csv"
        with cr.Ledger(given.ledger) as ledger:
            ledger.check(mechanism, asked.cohort, new_cohort=asked.new_cohort)
            released = draw()
            ledger.save(released, target, **asked.model_dump(include={"purpose", "cohort", "new_cohort"}))
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


def find_breaches(given: Given, asked: Setting) -> Iterator[str]:
    """Yield a sentence for each limit, of the page or of a policy, that the setting does not keep."""
    method = given.mechanism(asked)
    lines = given.policies.breaches(given.table, method)
    if asked.limits:
        own = cr.Policy(**asked.limits, **asked.risk, **asked.attacker).breaches(given.table, method)
        lines = [*(line.replace("the policy asks for", "the limit is", 1) for line in own), *lines]
    yield from (make_sentence(line.rstrip(".")) for line in dict.fromkeys(lines))


def describe_consequences(report: Report, given: Given, asked: Setting) -> dict[str, Any]:
    """What has to be known before a release: limits that it breaks, what its guarantee leaves out, its cost."""
    report("checking the limits", None)
    mechanism = given.mechanism(asked)
    broken, forbidden = list(find_breaches(given, asked)), bool(given.policies.breaches(given.table, mechanism))
    uncovered = [*given.remarks(asked), *given.policies.disclosures]
    if asked.observed_levels:
        uncovered.insert(0, "Labels are those that occur in the data: the guarantee does not cover which exist.")
    budget, refused = _describe_budget(given, asked, mechanism)
    limited = bool(asked.limits) or bool(given.policies)
    answer = "Forbidden" if forbidden or refused else "Make the release above the limit" if broken else ""
    return {
        "summary": f"This publishes counts of {given.table.n_records:,} {given.table.revealed_name} from "
        f"{given.recipe.name} ({describe_setting(given, asked)}).",
        "cost": f"It costs these people epsilon {claim(asked.epsilon)}, for good.",
        "broken": bool(broken),
        "limits": broken or ["Every limit is kept." if limited else "No limit is set."],
        "uncovered": uncovered or ["Nothing: every label and group was declared beforehand."],
        "budget": budget,
        "forbidden": forbidden or refused,
        "answer": answer or "Make the release",
    }


def describe_setting(given: Given, asked: Setting) -> str:
    delta = given.delta(asked.mechanism, asked.delta)
    return f"{asked.mechanism}, epsilon {claim(asked.epsilon)}{f', delta {claim(delta)}' if delta else ''}"


def _describe_budget(given: Given, asked: Setting, mechanism: cr.Mechanism) -> tuple[list[str], bool]:
    """What the people have spent before and after, and whether the ledger refuses this release."""
    if given.ledger is None:
        return ["No ledger is open: this loss is not recorded anywhere."], False
    from cellrisk.show.reporting.metadata import describe_budget

    cohort = asked.cohort or ""
    with cr.Ledger(given.ledger) as ledger:
        try:
            ledger.check(mechanism, cohort, new_cohort=asked.new_cohort)
        except CellriskError as refusal:
            return [f"The ledger refuses this: {refusal.render(name_field)}."], True
        if cohort not in ledger.state().declared:
            return [f"Cohort {cohort}: nothing spent before, {describe_setting(given, asked)} after."], False
        budget = describe_budget(ledger, cohort, cr.Loss.of(mechanism))
        return [budget["earlier"], budget["budget"][0][1]], False


def describe_ledger(place: str) -> dict[str, Any]:
    """Return the releases of a ledger in their order, what each cohort has spent, and whether all is as written."""
    from cellrisk.show.wording.ledger import say_budget

    with cr.Ledger(place) as ledger:
        verification = ledger.verify()
        whole = verification.ok
        return {
            "entries": [
                {"digest": entry.digest, "words": [entry.time[:16].replace("T", " "), entry.headline, entry.purpose]}
                for entry in (ledger.entries(kind="release") if whole else ())
            ],
            "cohorts": [say_budget(ledger, cohort) for cohort in ledger.state().declared] if whole else [],
            "verified": whole,
            "sentence": verification.headline,
            "chain": f"The chain of entries is {'unbroken' if whole else 'broken: the ledger was changed by hand'}.",
        }
