"""The record of a release for the OpenDP registry of differential privacy deployments, as record.yaml.j2 has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cellrisk.noise.mechanisms import DiscreteGaussian
from cellrisk.show.reporting.decision import Decision
from cellrisk.show.reporting.document import render
from cellrisk.show.reporting.metadata import name_table
from cellrisk.show.reporting.noise import FORMULAS, NEIGHBOURS, describe_scale, describe_threshold
from cellrisk.system.formatting import as_given, claim, make_sentence

FIELDS = (
    *("name", "curator", "description", "intended_use", "publication_date", "variant", "data_domain", "unprotected"),
    *("unit_details", "n_units", "epsilon", "delta", "rho", "why_none", "parameters_details", "release_type"),
    *("preparation", "mechanisms", "composition", "post_processing", "justification", "utility", "additional"),
)
"""What a release can know of its record; the rest is left to fill in."""


def write_record(slug: str, known: Mapping[str, Any]) -> str:
    """The record as YAML; what is not known is marked "to fill"."""
    return render("record.yaml.j2", {**dict.fromkeys(FIELDS), **known, "slug": slug})


def describe_decided(decision: Decision, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What a report on one table with noise knows of its record."""
    request, setting, epsilon = decision.request, decision.setting, decision.epsilon
    table, mechanism = request.table, None if epsilon is None else setting.with_epsilon(epsilon)
    sensitive, quasi_identifiers = ", ".join(table.sensitive), ", ".join(table.quasi_identifiers)
    scale = "" if mechanism is None else f"; {describe_scale(mechanism)}, in counts"
    tables, explained = len(table.sensitive), _explain_epsilon(decision)
    return {
        "name": metadata["title"] or f"Disclosure review of {name_table(table)}",
        "curator": metadata["organisation"],
        "description": f"Frequency table of {sensitive} by {quasi_identifiers}",
        "variant": "Pure DP" if setting.pure else "Approximate DP",
        "data_domain": f"Records with {quasi_identifiers}, {sensitive}",
        "unprotected": decision.unprotected,
        "unit_details": NEIGHBOURS[setting.neighbours],
        "n_units": None if request.public else f"{table.n_records:,}",
        "epsilon": None if epsilon is None else float(f"{epsilon:.12g}"),
        "delta": float(claim(setting.delta)),
        "rho": float(claim(mechanism.rho)) if isinstance(mechanism, DiscreteGaussian) else None,
        "why_none": None if epsilon is not None else decision.why_none,
        "parameters_details": explained,
        "preparation": _describe_steps(decision, metadata["preparation"]),
        "mechanisms": f"{FORMULAS[setting.name]}{scale}",
        "composition": (
            "One table, whose counts share no record (parallel composition)"
            if tables == 1
            else f"{tables} tables of the same records, each at this epsilon (sequential composition)"
        ),
        "post_processing": describe_threshold(setting.threshold),
        "justification": (
            f"{explained}. The risk that was measured is the {decision.measured.name} of the homogeneity attack on "
            f"{sensitive}"
        ),
        "utility": _describe_utility(decision),
    }


def _describe_steps(decision: Decision, preparation: Sequence[str]) -> str:
    prepared = "; ".join(preparation)
    steps = [f"Preparation: {prepared}"] if prepared else []
    if decision.chosen_from_data:
        steps.append("Epsilon was chosen by computing risks on the raw data; that loss of privacy is not accounted for")
    steps.append("Risks were assessed on the raw data before the release")
    return ". ".join(steps)


def _explain_epsilon(decision: Decision) -> str:
    limits = decision.request.describe_limits()
    if decision.kind == "recommended":
        return make_sentence(decision.largest, end="")
    if decision.kind in ("none", "unbound"):
        return f"None was chosen: {decision.why_none} ({limits})"
    return f"Given beforehand; checked for {limits}" if limits else "Given beforehand"


def _describe_utility(decision: Decision) -> str | None:
    trade_off = decision.trade_off
    if trade_off is None or decision.epsilon is None:
        return None
    measured = f"Mean TVD of {trade_off.limit.way}-way marginals"
    if decision.request.public:
        return f"{measured}, required to be at most {as_given(trade_off.limit.max_tvd)}"
    return f"{measured}: {trade_off.at(decision.epsilon):.3g}"
