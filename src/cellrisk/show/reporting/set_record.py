"""What a report on a set of tables knows of its record in the registry of deployments."""

from __future__ import annotations

from cellrisk.show.reporting.basis import FORMULAS, NEIGHBOURS, describe_scale, describe_threshold
from cellrisk.show.reporting.registry import NOT_APPLICABLE, Field, fill_fields
from cellrisk.show.reporting.set_request import SetRequest, name_set_table


def list_set_fields(request: SetRequest, public: bool = False) -> tuple[Field, ...]:
    """Every field of the registry's template, as far as a report on a set knows it."""
    cost, tables, found = request.cost, request.tables, request.found
    mechanisms = dict.fromkeys(table.mechanism.name for table in tables)
    thresholds = dict.fromkeys(describe_threshold(table.mechanism.threshold) for table in tables)
    told = "; ".join(f"table {name_set_table(each)}: {describe_scale(each.mechanism)}" for each in tables)
    limits = request.describe_limits()
    steps = [f"Preparation: {'; '.join(request.steps)}"] if request.steps else []
    steps += ["Risks were assessed on the raw data before the release"] if found is not None else []
    known: dict[str, str | None] = {
        "basic.name": request.title or f"{request.set_name} about the same people",
        "basic.data_curators.data_curator_name": request.organisation or None,
        "basic.description": "; ".join(f"Table {name_set_table(each)}" for each in tables),
        "dp_variant.variant_name": "Approximate DP" if cost.delta else "Pure DP",
        "dp_variant.data_domain": f"Records with {request.columns}, {request.sensitive}",
        "privacy_loss.privacy_unit_details": NEIGHBOURS[tables[0].mechanism.neighbours],
        "privacy_loss.number_of_privacy_units": None if public or found is None else f"{found.records:,}",
        "privacy_loss.privacy_parameters.epsilon": f"{cost.epsilon:.12g}",
        "privacy_loss.privacy_parameters.delta": f"{cost.delta:g}" if cost.delta else NOT_APPLICABLE,
        "privacy_loss.privacy_parameters.rho": NOT_APPLICABLE,
        "privacy_loss.privacy_parameters_details": (
            f"Given beforehand; checked for {limits}" if limits else "Given beforehand"
        ),
        "implementation.preprocessing_and_hyperparameter_tuning": ". ".join(steps) or None,
        "implementation.mechanisms": f"{'; '.join(FORMULAS[name] for name in mechanisms)}. Scales: {told}",
        "implementation.composition": cost.headline,
        "implementation.post_processing": " ".join(thresholds),
    }
    remarks = {
        "dp_variant.unprotected_quantities": "such as labels and cells that were only observed",
        "privacy_loss.number_of_privacy_units": "round it where the size is not public",
        "implementation.composition": "add other releases",
        "implementation.additional_information": "where the tables are published",
    }
    if public:
        remarks["privacy_loss.number_of_privacy_units"] = "withheld here; a rounded number will do"
    return fill_fields(known, remarks)
