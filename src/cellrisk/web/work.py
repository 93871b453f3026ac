"""The work of worker processes. Each function tells its progress, and returns what the page shows."""

from __future__ import annotations

import re
import secrets
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cellrisk.counts import datasets
from cellrisk.counts.cells import Cells
from cellrisk.counts.files import check_unpacked
from cellrisk.counts.preview import Preview, preview_file
from cellrisk.counts.table import FrequencyTable
from cellrisk.decide.choosing import Alternative, choose
from cellrisk.decide.policies import Policies
from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.assessment import assess
from cellrisk.risk.ceilings import ceiling
from cellrisk.risk.certainty import USUAL_CERTAINTY
from cellrisk.risk.curves import curve
from cellrisk.risk.figure_lines import CausedLine, FigureLines
from cellrisk.risk.figures import DecisionFigures
from cellrisk.risk.measures import WEIGHTS
from cellrisk.risk.people import count_people
from cellrisk.risk.sweep import LARGEST_EPSILON, LEAST_EPSILON
from cellrisk.system.arrays import Floats
from cellrisk.system.spreadsheets import tell_formulas
from cellrisk.system.text import make_sentence, number_of, percent
from cellrisk.system.words import Form, MeasureName, MechanismName, Neighbours, Weights
from cellrisk.web.boxes import known_as, name_boxes
from cellrisk.web.jobs import TellProgress
from cellrisk.web.recipes import Recipe, find_delta, make_mechanism, narrow, offer_deltas
from cellrisk.web.request_models import LIMITS

CELLS_KEPT = 200_000
"""Tables with up to so many cells keep their keys; others are read again where somebody must see them."""
DIGITS = 3
NO_LIMIT = "No limit is set: this is what each epsilon costs, and nothing is recommended."
COMPARED_POINTS = 61


@dataclass(frozen=True)
class Tabulated:
    """A table, and the numbers that warnings about it need."""

    table: FrequencyTable
    values: dict[str, int]
    """Distinct values of each quasi-identifier; empty where the cells were not read."""
    once: dict[str, int]
    """How many values of each quasi-identifier occur in one record only."""
    cells: dict[str, Cells] = field(default_factory=dict)
    """The cells for each sensitive attribute: a table that is pickled has none. Empty where they were not read."""


def warm_up() -> None:
    """Loads what the first job would wait for."""
    preview_file(datasets.adult_path())


def look(report: TellProgress, path: str, name: str, unpacked_limit: int | None = None) -> Preview:
    report("reading the columns", None)
    with known_as(path, name):
        check_unpacked(path, unpacked_limit)
        return preview_file(path, progress=partial(report, "reading the columns"))


def count(report: TellProgress, recipe: Recipe, unpacked_limit: int | None = None) -> Tabulated:
    """The table, with its cells where there are not too many."""
    report("counting", None)
    check_unpacked(recipe.path, unpacked_limit)
    table = recipe.tabulate(partial(report, "counting"))
    values, once, read = {}, {}, {}
    if table.n_cells <= CELLS_KEPT:
        for number, name in enumerate(table.sensitive):
            report("reading the cells", number / len(table.sensitive))
            cells = read[name] = table.cells(name)
        for place, domain in enumerate(cells.domains):
            records = np.bincount(cells.codes[:, place], cells.sizes, minlength=len(domain))
            values[domain.name], once[domain.name] = int((records > 0).sum()), int((records == 1).sum())
    return Tabulated(table, values, once, read)


def read_cells(report: TellProgress, table: FrequencyTable, name: str) -> Cells:
    """The cells of a table with their keys."""
    report("reading the cells", None)
    return table.cells(name)


def slider(points: int) -> Floats:
    """The epsilons of a slider: evenly spaced in the logarithm, and short enough to be printed as they are.

    >>> slider(6).tolist()
    [0.001, 0.01, 0.1, 1.0, 10.0, 100.0]
    """
    spaced = np.geomspace(LEAST_EPSILON, LARGEST_EPSILON, points)
    return np.unique([float(f"{epsilon:.{DIGITS}g}") for epsilon in spaced])


def position(
    report: TellProgress,
    table: FrequencyTable,
    sensitive: str | None,
    mechanism: MechanismName,
    deltas: Sequence[float] | None,
    neighbours: Neighbours,
    measures: Sequence[MeasureName],
    points: int,
) -> dict[str, Any]:
    """What the slider shows at each position: the risks, the people given away because of their own record, the
    ceiling, and a sentence. Intervals and certainty take longer: `find_figures` and `trace_certainty`."""
    narrowed = narrow(table, sensitive)
    chosen = offer_deltas(mechanism, table.n_records) if deltas is None else deltas
    found = curve(
        narrowed,
        mechanism,
        epsilon=slider(points),
        delta=[find_delta(mechanism, delta, table.n_records) for delta in chosen],
        measures=[*measures, "caused", "ceiling"],
        neighbours=neighbours,
        progress=partial(report, "computing the risks"),
    )
    settings = list(dict.fromkeys(line.setting for line in found.lines))
    epsilons = found.lines[0].epsilon
    rows: dict[str, dict[str, Any]] = {}
    for line in found.lines:
        for weights in WEIGHTS if line.weights is None else [line.weights]:
            row = rows.setdefault(f"{line.measure}/{weights}/{settings.index(line.setting)}", {})
            row[line.form] = line.risk.tolist()
            if line.form == "tight":
                row |= {"chance": line.limits.chance, "raw": line.limits.raw}
    figures = {}
    for number, lines in enumerate(found.figures):
        if lines.caused is None or lines.ceiling is None:
            raise InvalidInput("no figures were computed")
        figures[str(number)] = {
            "exposed": lines.caused.exposed_share.tolist(),
            "caused": lines.caused.share.tolist(),
            "chance": lines.caused.exposed_limits.chance,
            "raw": lines.caused.exposed_limits.raw,
            "ceiling": lines.ceiling.even_two.tolist(),
            "sentences": [_say(lines, lines.caused, place) for place in range(len(epsilons))],
        }
    return {
        "epsilons": epsilons.tolist(),
        "deltas": [None if setting.pure else setting.delta for setting in settings],
        "default_index": 0,
        "rows": rows,
        "figures": figures,
    }


def _say(lines: FigureLines, caused: CausedLine, place: int) -> str:
    """The figures at one position, as far as they are known at once."""
    mechanism = lines.setting.with_epsilon(float(lines.epsilon[place]))
    nobody = ceiling(mechanism, labels=2)
    known = DecisionFigures(lines.sensitive, lines.attack, mechanism, caused.points[place], (), None, None, nobody)
    return known.sentence(caused.exposed_limits.chance)


def trace_certainty(
    report: TellProgress,
    table: FrequencyTable,
    sensitive: str | None,
    mechanism: MechanismName,
    delta: float | None,
    neighbours: Neighbours,
    points: int,
) -> dict[str, Any]:
    """The share of people whose value an attacker who does the mathematics names with certainty, along epsilon."""
    try:
        found = curve(
            narrow(table, sensitive),
            mechanism,
            epsilon=slider(points),
            delta=find_delta(mechanism, delta, table.n_records),
            measures="certainty",
            neighbours=neighbours,
            progress=partial(report, "doing the mathematics"),
        ).figures[0]
    except CellriskError as refusal:
        return {"certainty": USUAL_CERTAINTY, "unknown": str(refusal), "epsilons": [], "sure": []}
    share = found.certainty[0].right / found.records
    return {
        "certainty": USUAL_CERTAINTY,
        "unknown": None,
        "epsilons": found.epsilon.tolist(),
        "sure": share.tolist(),
    }


def find_figures(
    report: TellProgress, table: FrequencyTable, sensitive: str | None, mechanism: Mechanism
) -> dict[str, Any]:
    """The figures to decide by at one epsilon, with their intervals, as `assess` tells them."""
    report("counting the people", None)
    found = assess(narrow(table, sensitive), mechanism, measures="local")
    figures, exposure = found.figures[0], found.exposures[0]
    return {
        "epsilon": mechanism.epsilon,
        "sentence": found.headline,
        "certainty": figures.describe_certainty(),
        "people": {name: getattr(exposure.people, name) for name in ("mean", "low", "high", "exact")},
        "decision": figures.to_dict(),
    }


def find_admissible(report: TellProgress, table: FrequencyTable, sensitive: str | None, **asked: Any) -> dict[str, Any]:
    """The epsilons that keep the limits, and the policies in force."""
    report("looking for the epsilons that keep the limits", None)
    asked["delta"] = find_delta(asked["mechanism"], asked["delta"], table.n_records)
    choice = choose(narrow(table, sensitive), progress=partial(report, "looking for epsilon"), **asked)
    return {
        "epsilon": choice.epsilon,
        "risk": choice.risk,
        "intervals": [list(interval) for interval in choice.admissible],
        "why": name_boxes(make_sentence(choice.why)),
        "sentence": name_boxes(choice.headline),
        "policy": choice.policies.describe(),
    }


def draw_map(
    report: TellProgress, table: FrequencyTable, sensitive: str | None, max_tvd: float | None, **asked: Any
) -> dict[str, Any]:
    """Risk and utility along epsilon, and the choice between them."""
    narrowed = narrow(table, sensitive)
    asked["delta"] = find_delta(asked["mechanism"], asked["delta"], table.n_records)
    limited = bool(asked["policy"]) or any(asked[name] is not None for name in LIMITS)
    if not limited:
        asked["max_risk"] = 1.0
    report("simulating releases", 0.0)
    choice = choose(
        narrowed,
        max_tvd=1.0 if max_tvd is None else max_tvd,
        progress=partial(report, "simulating releases"),
        **asked,
    )
    if choice.trade_off is None:
        raise InvalidInput("no releases were simulated")
    roles = {each.role: _describe_alternative(each) for each in choice.alternatives}
    sentence = choice.headline if limited else NO_LIMIT
    if max_tvd is None:  # the limit of 1, which was set to have releases simulated, is nobody's
        sentence = re.sub(r" and a TVD of at most 1\b|; the limit on the TVD asks for [^;]*", "", sentence)
    return {
        "points": choice.trade_off.to_dict()["points"],
        **{role: roles.get(role) for role in ("recommended", "stricter", "looser")},
        "sentence": name_boxes(sentence),
    }


def _describe_alternative(each: Alternative) -> dict[str, Any]:
    people = each.people[0].mean
    return {"epsilon": each.epsilon, "risk": each.risk, "tvd": each.tvd, "people": people, "verdict": each.verdict}


def compare(
    report: TellProgress,
    table: FrequencyTable,
    recipe: Recipe,
    a: dict[str, Any],
    b: dict[str, Any],
    sensitive: str | None,
    measure: MeasureName,
    form: Form,
    weights: Weights,
    neighbours: Neighbours,
) -> dict[str, Any]:
    """Two settings side by side; a table with other quasi-identifiers or bins is counted first."""
    sides = {}
    for number, (name, side) in enumerate((("a", a), ("b", b))):
        changed = recipe.changed(side["quasi_identifiers"], side["bins"])
        report("counting", number / 2)
        given = table if changed == recipe else changed.tabulate()
        narrowed = narrow(given, table.attribute(sensitive).name)
        mechanism = make_mechanism(side["mechanism"], side["epsilon"], side["delta"], neighbours, table.n_records)
        report("computing the risks", number / 2 + 0.3)
        epsilons = np.unique(np.append(slider(COMPARED_POINTS), mechanism.epsilon))
        found = curve(
            narrowed,
            mechanism.name,
            epsilon=epsilons,
            delta=mechanism.delta,
            neighbours=mechanism.neighbours,
            measures=measure,
            forms=form,
            weights=weights,
        ).lines[0]
        people = count_people(narrowed.profiles(), mechanism)
        sides[name] = {
            "label": _label(recipe, changed, found.setting.describe()),
            "cells": narrowed.n_cells,
            "epsilons": found.epsilon.tolist(),
            "risk": found.risk.tolist(),
            "at": {"epsilon": mechanism.epsilon, "risk": found.at(mechanism.epsilon), "people": people.mean},
        }
    return {**sides, "sentence": _compare_in_words(sides["a"], sides["b"])}


def _label(recipe: Recipe, changed: Recipe, mechanism: str) -> str:
    parts = [mechanism]
    gone = [name for name in recipe.quasi_identifiers if name not in changed.quasi_identifiers]
    parts += [f"without {', '.join(gone)}"] if gone else []
    new = [name for name in changed.quasi_identifiers if name not in recipe.quasi_identifiers]
    parts += [f"with {', '.join(new)}"] if new else []
    old = dict(recipe.bins)
    parts += [f"{name} in bins {text}" for name, text in changed.bins if old.get(name) != text]
    whole = [name for name in old if name in changed.quasi_identifiers and name not in dict(changed.bins)]
    parts += [f"{name} without bins" for name in whole]
    return "; ".join(parts)


def _compare_in_words(a: dict[str, Any], b: dict[str, Any]) -> str:
    def say(side: dict[str, Any]) -> str:
        at = side["at"]
        return (
            f"{side['label']}, at epsilon {at['epsilon']:g}: risk {percent(at['risk'])}, "
            f"{number_of(at['people'], 'person')} exposed"
        )

    difference = round(b["at"]["people"]) - round(a["at"]["people"])
    word = "more" if difference > 0 else "fewer"
    change = number_of(abs(difference), f"{word} person", f"{word} people") if difference else "as many people"
    return f"A ({say(a)}). B ({say(b)}). B exposes {change}{' as A' if not difference else ' than A'}."


@dataclass(frozen=True)
class Written:
    """A file to be downloaded, and the sentences that the page shows beside it."""

    path: str
    sentence: str
    remark: str | None = None


def write_report(report: TellProgress, table: FrequencyTable, recipe: Recipe, folder: str, **asked: Any) -> Written:
    """The report for a board, as the command line writes it."""
    from cellrisk.show.reporting import report as make_report

    sensitive = asked.pop("sensitive")
    found = make_report(
        narrow(table, sensitive),
        **asked,
        source=recipe.name,
        preparation=[f"{name} in bins: {text}" for name, text in recipe.bins],
        progress=partial(report, "writing the report"),
    )
    written = found.save(Path(folder) / f"{stem(recipe.name)}-report.html")
    return Written(str(written), found.headline)


def write_curve(
    report: TellProgress,
    table: FrequencyTable,
    recipe: Recipe,
    folder: str,
    kind: str,
    sensitive: str | None,
    spreadsheet_safe: bool = False,
    **asked: Any,
) -> Written:
    """The curve as numbers or as a picture, as the command line writes it."""
    found = curve(narrow(table, sensitive), **asked, progress=partial(report, "computing the risks"))
    target = Path(folder) / f"{stem(recipe.name)}-{kind}"
    if not kind.endswith(".csv"):
        return Written(str(found.plot(target)), found.headline)
    written = found.to_csv(target, spreadsheet_safe=spreadsheet_safe)
    return Written(str(written), found.headline, tell_formulas(written))


def write_release(
    report: TellProgress,
    table: FrequencyTable,
    recipe: Recipe,
    folder: str,
    mechanism: Mechanism,
    sensitive: str,
    ending: str,
    policy: Policies | None,
    entry: dict[str, Any] | None = None,
    **asked: Any,
) -> Written:
    """The release and its description in one archive.

    Where there is a ledger, release and entry are written together or not at all, and the release also stays in the
    folder that the entry names.
    """
    from cellrisk.publish.releasing import release

    draw = partial(
        release, table, mechanism, sensitive=sensitive, policy=policy, progress=partial(report, "releasing"), **asked
    )
    Policies.in_force(policy).forbid(table, mechanism, sensitive)  # before anything is drawn
    name = f"{stem(recipe.name)}-release"
    if entry is None:
        target = Path(folder, f"{name}.{ending}")
        released = draw()
        released.save(target)
    else:
        from cellrisk.repeat.ledger import Ledger

        place, releases = entry.pop("place"), Path(entry.pop("releases"))
        releases.mkdir(exist_ok=True)
        target = releases / f"{name}-{secrets.token_hex(4)}.{ending}"
        about = {name: entry[name] for name in ("cohort", "new_cohort", "part_of") if name in entry}
        with Ledger(place) as ledger:
            ledger.check(mechanism, **about)
            released = draw()
            ledger.save(released, target, **entry)
    archive = Path(folder, f"{name}.zip")
    with zipfile.ZipFile(archive, "x", zipfile.ZIP_DEFLATED) as packed:
        for path in (target, Path(f"{target}.json")):
            packed.write(path, path.name)
            if entry is None:
                path.unlink()
    return Written(str(archive), released.headline, released.formulas if ending == "csv" else None)


def stem(name: str) -> str:
    """The name of a file without folders, ending and letters that a system may not like.

    >>> stem("2024/people (new).csv.gz")
    'people-new'
    """
    last = name.rpartition("/")[2].partition(".")[0]
    return re.sub(r"[^A-Za-z0-9_]+", "-", last).strip("-")[:60] or "table"
