"""What a report shows the public: the decision and the policy, and no figure that was computed from the raw data."""

from __future__ import annotations

from cellrisk.decide.policy import CHECKED
from cellrisk.show.reporting.basis import basis_section, mechanism_section
from cellrisk.show.reporting.blocks import Bullets, Facts, Page, Section, Words
from cellrisk.show.reporting.contents import SIGN_OFF
from cellrisk.show.reporting.decision import Decision
from cellrisk.show.reporting.registry import registry_section
from cellrisk.show.reporting.verdict import describe_decision, public_verdict

FOR_THE_PUBLIC = "For the public: figures computed from the raw data are withheld."
WITHHELD = (
    "Figures computed from the raw data are withheld, because they are not differentially private: the numbers of "
    "records and cells, the risks before and after noise, the people exposed, the sizes of cells, and every value that "
    "describes a cell."
)
EXCEPT_FIGURE = "The one figure above has noise and an epsilon of its own, and may be published."
CHOSEN = (
    "Epsilon was chosen from the data, so that the choice itself discloses something about them; the guarantee does "
    "not cover it."
)


def public_page(decision: Decision) -> Page:
    """The document for the public."""
    request = decision.request
    return Page(
        title=request.heading,
        about=request.about,
        banner=FOR_THE_PUBLIC,
        decision=describe_decision(decision),
        verdict=public_verdict(decision),
        sections=(
            _policy_section(decision),
            *_figure_sections(decision),
            _withheld_section(decision),
            basis_section(request),
            mechanism_section(decision),
            registry_section(decision),
        ),
        sign_off=SIGN_OFF,
    )


def _policy_section(decision: Decision) -> Section:
    limits = decision.request.describe_limits()
    facts = Facts(
        (
            ("Attack considered", "homogeneity: a cell that shows one value alone gives it away for everybody in it"),
            ("Risk that was measured", decision.described_risk),
            ("Limit that had to be met", limits or "none"),
        )
    )
    return Section("policy", "What was measured and required", (), (facts,))


def _figure_sections(decision: Decision) -> tuple[Section, ...]:
    """How risky the release is, where a figure with noise of its own was asked for."""
    published = decision.request.published
    if published is None:
        return ()
    return (
        Section("figure", "How risky the release is", (published.headline,), (Bullets(tuple(published.statements)),)),
    )


def _withheld_section(decision: Decision) -> Section:
    notes = []
    if decision.chosen_from_data and decision.epsilon is not None:
        notes.append(CHOSEN)
    elif decision.kind != "open":
        notes.append(CHECKED)
    notes += decision.request.disclosures
    blocks = (Bullets(tuple(notes)),) if notes else (Words(("Epsilon was given beforehand.",)),)
    withheld = WITHHELD if decision.request.published is None else f"{WITHHELD} {EXCEPT_FIGURE}"
    return Section("withheld", "What is withheld, and what the choice discloses", (withheld,), blocks)
