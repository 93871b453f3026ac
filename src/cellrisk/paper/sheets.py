"""Which lines stand in which picture: figure 3 of the paper, the supplement's, and those beyond it."""

from __future__ import annotations

from collections.abc import Mapping

from cellrisk.paper.bundles import PAPER_MECHANISMS, WEIGHTINGS, Bundle
from cellrisk.paper.experiments import ADULT, BANKRUPTCY, DEFINED, PUBLISHED, SUBSET
from cellrisk.paper.panels import Panel, Sheet
from cellrisk.risk.curves import Line
from cellrisk.risk.measures import FORMS, MEASURES

TITLES = {"laplace": "Laplace", "gaussian": "Gaussian, classical", "gaussian-pdp": "Gaussian, probabilistic"}
ADULT_PUBLISHED, ADULT_DEFINED = f"{ADULT} {PUBLISHED}", f"{ADULT} {DEFINED}"
CLASSICAL = "The classical Gaussian mechanism holds below epsilon 1 only, so its curves end there."


def make_sheets(bundles: Mapping[str, Bundle]) -> tuple[Sheet, ...]:
    """Every picture that the experiments at hand allow, in the order of the paper, then those beyond it."""
    sheets: list[Sheet] = []
    if ADULT_PUBLISHED in bundles:
        sheets += _adult_sheets(bundles[ADULT_PUBLISHED], bundles[ADULT_DEFINED])
    if BANKRUPTCY in bundles:
        sheets += _bankruptcy_sheets(bundles[BANKRUPTCY], bundles[SUBSET])
    if ADULT_PUBLISHED in bundles:
        sheets.append(_thresholding_sheet(bundles[ADULT_PUBLISHED], bundles[ADULT_DEFINED]))
    for bundle in bundles.values():
        if bundle.experiment.label != ADULT_PUBLISHED:
            sheets += _beyond_sheets(bundle)
    return tuple(sheets)


def _adult_sheets(published: Bundle, defined: Bundle) -> list[Sheet]:
    rows, cells = (f"{bundle.experiment.table.n_cells:,}" for bundle in (published, defined))
    mixed = f"{defined.experiment.table.profiles().n_heterogeneous:,}"
    return [
        Sheet(
            "figure-3-adult-as-published",
            "Figure 3 (a)-(f): Adult as published",
            f"The paper's curves. {rows} rows, each a cell with one income, are taken for cells, so that every cell is "
            f"homogeneous; local and expected risk are then the same. {CLASSICAL}",
            _paper_panels(published, "abcdef", "local"),
        ),
        Sheet(
            "figure-3-adult-as-defined-local",
            "Figure 3 (a)-(f), as defined: Adult, local risk",
            f"The same panels by the paper's own definition of a cell: {cells} cells of the quasi-identifiers, {mixed} "
            "of them heterogeneous. The raw table no longer gives everybody away.",
            _paper_panels(defined, "abcdef", "local"),
        ),
        Sheet(
            "figure-3-adult-as-defined-expected",
            "Figure 3 (a)-(f), as defined: Adult, expected risk",
            f"The same {cells} cells; with heterogeneous cells the expected risk is another number than the local one.",
            _paper_panels(defined, "abcdef", "expected"),
        ),
    ]


def _bankruptcy_sheets(whole: Bundle, subset: Bundle) -> list[Sheet]:
    cells, some = whole.experiment.table.n_cells, subset.experiment.table.profiles()
    about = f"{some.n_cells} cells, {some.n_heterogeneous} of them heterogeneous, {some.n_levels} levels."
    return [
        Sheet(
            "figure-3-bankruptcy",
            "Figure 3 (g)-(l): Bankruptcy",
            f"{cells} cells, all homogeneous: local and expected risk are the same. {CLASSICAL}",
            _paper_panels(whole, "ghijkl", "local"),
        ),
        Sheet(
            "figure-3-subset-local",
            "Figure 3 (m)-(r): Bankruptcy subset, local risk",
            f"{about} Published form: a heterogeneous cell's risk is the paper's closed form, not its exact risk.",
            _paper_panels(subset, "mnopqr", "local"),
        ),
        Sheet(
            "figure-3-subset-expected",
            "Figure 3 (s)-(x): Bankruptcy subset, expected risk",
            f"{about} The average of the local risk over tables with the same proportions in each cell.",
            _paper_panels(subset, "stuvwx", "expected"),
        ),
    ]


def _paper_panels(bundle: Bundle, letters: str, measure: str) -> tuple[Panel, ...]:
    """Three mechanisms, each cell alike and then by records; a line for each delta."""
    settings = [(mechanism, weights) for weights in WEIGHTINGS for mechanism in PAPER_MECHANISMS]
    return tuple(
        _panel(
            bundle,
            letter,
            f"{TITLES[mechanism]}, {WEIGHTINGS[weights]}",
            bundle.pick(mechanism=mechanism, weights=weights, measure=measure, form="published", attack="homogeneity"),
        )
        for letter, (mechanism, weights) in zip(letters, settings, strict=True)
    )


def _panel(bundle: Bundle, letter: str, title: str, lines: tuple[Line, ...]) -> Panel:
    return Panel(letter, bundle.experiment.name, bundle.experiment.reading, title, lines)


def _thresholding_sheet(published: Bundle, defined: Bundle) -> Sheet:
    panels = []
    for bundle in (published, defined):
        for weights, words in WEIGHTINGS.items():
            lines = bundle.pick(mechanism="laplace", measure="local", form="tight", weights=weights)
            panels.append(_panel(bundle, "", f"{bundle.experiment.reading}, {words}", lines))
    return Sheet(
        "supplement-thresholding",
        "Supplement: attackers who guess, on Adult",
        "Hard thresholding names the largest released count of a cell (plurality), soft thresholding draws a value in "
        "proportion to the counts (proportional); beside them the homogeneity attack. Laplace noise; the share of "
        "people whose own value is named. The paper simulates; these curves are exact.",
        tuple(panels),
    )


def _beyond_sheets(bundle: Bundle) -> list[Sheet]:
    label, stem = bundle.experiment.label, bundle.experiment.stem
    homogeneous = bundle.experiment.table.profiles().n_heterogeneous == 0
    alike = " All cells are homogeneous, so the three forms are one line." if homogeneous else ""
    forms = [
        _panel(bundle, "", f"local, {words}", tuple(bundle.one(form=form, weights=weights) for form in FORMS))
        for weights, words in WEIGHTINGS.items()
    ]
    measures = [
        _panel(
            bundle,
            "",
            f"{form}, {words}",
            tuple(
                bundle.one(measure=name, form=form, weights=None if kind.one_number else weights)
                for name, kind in MEASURES.items()
            ),
        )
        for form in ("published", "tight")
        for weights, words in WEIGHTINGS.items()
    ]
    noises = [
        _panel(
            bundle,
            "",
            f"local, tight, {words}",
            tuple(bundle.one(form="tight", weights=weights, mechanism=name) for name in ("laplace", "geometric")),
        )
        for weights, words in WEIGHTINGS.items()
    ]
    return [
        Sheet(
            f"beyond-{stem}-forms",
            f"Beyond the paper: {label}, published, exact and tight",
            "Published is the paper's closed form; exact is the probability that the released cell shows one value "
            "that is there; tight counts only the people whose own value is shown. Laplace noise." + alike,
            tuple(forms),
        ),
        Sheet(
            f"beyond-{stem}-measures",
            f"Beyond the paper: {label}, all five measures",
            "Shrinkage, marginal and marginal shrinkage risk, which the paper defines and does not show, beside local "
            "and expected. Laplace noise; the Dirichlet prior and zero-truncated Poisson sizes are fitted by maximum "
            "likelihood. Marginal shrinkage is one number for the table, whatever the weights.",
            tuple(measures),
        ),
        Sheet(
            f"beyond-{stem}-geometric",
            f"Beyond the paper: {label}, geometric beside Laplace noise",
            "The same privacy loss with noise of whole numbers. The paper expects more accurate counts to give away "
            "more: the geometric line shows how much.",
            tuple(noises),
        ),
    ]
