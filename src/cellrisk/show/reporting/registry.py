"""The record of a release for the OpenDP registry of differential privacy deployments, as record.yaml.j2 has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cellrisk.noise.mechanisms import DiscreteGaussian
from cellrisk.show.reporting.decision import Decision
from cellrisk.show.reporting.document import render
from cellrisk.system.formatting import claim
from cellrisk.system.templates import to_plain

FIELDS = (
    *("name", "curator", "description", "intended_use", "publication_date", "variant", "data_domain", "unprotected"),
    *("unit_details", "n_units", "epsilon", "delta", "rho", "why_none", "parameters_details", "release_type"),
    *("preparation", "mechanisms", "composition", "post_processing", "justification", "utility", "additional"),
)
"""What a release can know of its record; the rest is left to fill in."""


def write_record(known: Mapping[str, Any], template: str = "record.yaml.j2") -> str:
    """The record as YAML; what is not known is marked "to fill"."""
    return render(template, to_plain({**dict.fromkeys(FIELDS), "slug": "release", **known}))


def record_decided(decision: Decision, data: Mapping[str, Any]) -> str:
    """The record of the release that a report on one table with noise is about, from the data of the report."""
    epsilon, trade_off, setting = decision.epsilon, decision.trade_off, decision.setting
    mechanism = None if epsilon is None else setting.with_epsilon(epsilon)
    known = {
        "unprotected": decision.unprotected,
        "chosen_from_data": decision.chosen_from_data,
        "largest": decision.largest if decision.kind == "recommended" else "",
        "epsilon": None if epsilon is None else float(f"{epsilon:.12g}"),
        "delta": float(claim(setting.delta)),
        "rho": float(claim(mechanism.rho)) if isinstance(mechanism, DiscreteGaussian) else None,
        "tvd_at": None if trade_off is None or epsilon is None else trade_off.at(epsilon),
    }
    return write_record({**data, **known}, "record_decided.yaml.j2")
