"""What a report on one table knows of its record in the registry of deployments."""

from __future__ import annotations

from cellrisk.noise.mechanisms import DiscreteGaussian
from cellrisk.show.reporting.basis import FORMULAS, NEIGHBOURS, describe_scale, describe_threshold, read_domains
from cellrisk.show.reporting.decision import Decision
from cellrisk.show.reporting.registry import NOT_APPLICABLE, Field, fill_fields, remark_on
from cellrisk.system.text import as_given, claim, make_sentence


def list_fields(decision: Decision) -> tuple[Field, ...]:
    """Every field of the registry's template, as far as a report knows it."""
    request, setting, epsilon = decision.request, decision.setting, decision.epsilon
    table, mechanism = request.table, None if epsilon is None else setting.with_epsilon(epsilon)
    sensitive, quasi_identifiers = ", ".join(table.sensitive), ", ".join(table.quasi_identifiers)
    scale = "" if mechanism is None else f"; {describe_scale(mechanism)}"
    known = {
        "basic.name": request.heading,
        "basic.data_curators.data_curator_name": request.organisation or None,
        "basic.description": f"Frequency table of {sensitive} by {quasi_identifiers}",
        "dp_variant.variant_name": "Pure DP" if setting.pure else "Approximate DP",
        "dp_variant.data_domain": f"Records with {quasi_identifiers}, {sensitive}",
        "dp_variant.unprotected_quantities": list_unprotected(decision),
        "privacy_loss.privacy_unit_details": NEIGHBOURS[setting.neighbours],
        "privacy_loss.number_of_privacy_units": None if request.public else f"{table.n_records:,}",
        "privacy_loss.privacy_parameters.epsilon": None if epsilon is None else f"{epsilon:.12g}",
        "privacy_loss.privacy_parameters.delta": NOT_APPLICABLE if setting.pure else claim(setting.delta),
        "privacy_loss.privacy_parameters.rho": (
            claim(mechanism.rho) if isinstance(mechanism, DiscreteGaussian) else NOT_APPLICABLE
        ),
        "privacy_loss.privacy_parameters_details": _explain_epsilon(decision),
        "implementation.preprocessing_and_hyperparameter_tuning": _describe_steps(decision),
        "implementation.mechanisms": f"{FORMULAS[setting.name]}{scale}",
        "implementation.composition": (
            "One table, whose counts share no record (parallel composition)"
            if len(table.sensitive) == 1
            else f"{len(table.sensitive)} tables of the same records, each at this epsilon (sequential composition)"
        ),
        "implementation.post_processing": describe_threshold(setting.threshold),
        "implementation.justification": (
            f"{_explain_epsilon(decision)}. The risk that was measured is the {decision.measured.name} of the "
            f"homogeneity attack on {sensitive}"
        ),
        "implementation.utility": _describe_utility(decision),
    }
    remarks = {**remark_on(request.public), "implementation.additional_information": "where the table is published"}
    if epsilon is None:
        remarks["privacy_loss.privacy_parameters.epsilon"] = decision.why_none
    return fill_fields(known, remarks)


def _describe_steps(decision: Decision) -> str:
    prepared = "; ".join(decision.request.preparation)
    steps = [f"Preparation: {prepared}"] if prepared else []
    if decision.chosen_from_data:
        steps.append("Epsilon was chosen by computing risks on the raw data; that loss of privacy is not accounted for")
    steps.append("Risks were assessed on the raw data before the release")
    return ". ".join(steps)


def list_unprotected(decision: Decision) -> str | None:
    """What a release would show of the data without noise; None where this cannot be told."""
    table = decision.request.table
    domains = read_domains(table)
    if not domains:
        return None
    observed = [domain.name for domain in domains if not domain.declared]
    observed += [attribute.name for attribute in table.attributes if not attribute.declared]
    parts = [f"the values that occur of {', '.join(observed)}"] if observed else []
    if decision.request.cells == "observed":
        parts.append("which cells hold records")
    if decision.chosen_from_data:
        parts.append("epsilon, which was chosen from the data")
    elif decision.limits_use_data:
        parts.append("whether the limits are kept, which was found from the data")
    if decision.request.delta_from_data:
        parts.append("delta, which was set from the number of records")
    if table.missing == "error" or table.outside == "error":
        parts.append("that no record was refused, which was found from the data")
    parts += [sentence.removesuffix(".") for sentence in decision.request.disclosures]
    return "; ".join(parts) or "none"


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
