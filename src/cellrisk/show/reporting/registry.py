"""The fields of a record in a registry of differential privacy deployments, filled where this report knows the answer.

The fields and their order are those of the privacy deployments registry of OpenDP, whose schema and template are in
the repository opendp/deployments-registry-data: schemas/deployments-schema.yaml and
tests/good_deployments/template.yaml, as of commit 057e5d81cf60. The schema goes back to research of Ghazi, Nanayakkara
and Vadhan. What only the publisher knows is left to fill.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cellrisk.noise.mechanisms import DiscreteGaussian
from cellrisk.show.reporting.basis import FORMULAS, NEIGHBOURS, describe_scale, describe_threshold, read_domains
from cellrisk.show.reporting.blocks import Section, TableBlock
from cellrisk.show.reporting.decision import Decision

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

TO_FILL = "to fill"


@dataclass(frozen=True)
class Field:
    """One field of a record, by its path below ``deployment``; the value is None where it is to be filled."""

    path: str
    value: str | None = None
    remark: str = ""
    """What to bear in mind when filling it in."""

    def describe(self) -> str:
        if self.value is None:
            return f"{TO_FILL}: {self.remark}" if self.remark else TO_FILL
        return f"{self.value} ({self.remark})" if self.remark else self.value


def registry_section(
    decision: Decision, title: str, organisation: str | None, preparation: Sequence[str], public: bool
) -> Section:
    """Section 10: a record to be copied into the registry, once its gaps are filled."""
    fields = tuple(list_fields(decision, title, organisation, preparation, public))
    filled = sum(field.value is not None for field in fields)
    lead = (
        f"A record for the OpenDP registry of differential privacy deployments: {filled} of {len(fields)} fields can "
        f"be filled from this report, the others are marked \u201c{TO_FILL}\u201d.",
    )
    rows = tuple((field.path, field.describe()) for field in fields)
    return Section("registry", "Record for the deployments registry", lead, (_grid(rows),))


def _grid(rows: tuple[tuple[str, str], ...]) -> TableBlock:
    return TableBlock("Fields of the record", ("Field", "Value"), rows, texts=(0, 1))


def list_fields(
    decision: Decision, title: str, organisation: str | None, preparation: Sequence[str], public: bool
) -> Iterator[Field]:
    """Every field of the registry's template, in its order."""
    table = decision.asked.table
    yield Field("basic.name", title)
    yield Field("basic.data_curators.data_curator_name", organisation or None)
    yield Field("basic.data_curators.data_curator_type", None, "Government, Industry or Nonprofit")
    yield Field("basic.description", _describe_table(table))
    yield Field("basic.intended_use")
    yield Field("basic.data_product_type", "Summary statistics")
    yield Field("basic.data_product_region")
    yield Field("basic.data_product_sector")
    yield Field("basic.publication_date", None, "year, month, day")
    yield from _privacy_fields(decision, public)
    yield from model_fields()
    yield from _implementation_fields(decision, preparation, public)
    yield Field("administrative.evidence_sources", None, "where the release and its method are described")
    yield Field("administrative.status", "Draft")
    yield Field("administrative.registry_authors")
    yield Field("administrative.tier", None, "1, 2 or 3, by how much is filled in")


def _privacy_fields(decision: Decision, public: bool) -> Iterator[Field]:
    table, setting = decision.asked.table, decision.setting
    yield Field("dp_variant.variant_name", "Pure DP" if setting.pure else "Approximate DP")
    yield Field(
        "dp_variant.data_domain",
        f"Records with {', '.join((*table.quasi_identifiers, *table.sensitive))}",
        "add which records were eligible",
    )
    yield Field("dp_variant.unprotected_quantities", _list_unprotected(decision))
    yield Field("privacy_loss.privacy_unit", "Record", "person, where each person has one record")
    yield Field("privacy_loss.privacy_unit_details", NEIGHBOURS[setting.neighbours])
    if public:
        yield Field("privacy_loss.number_of_privacy_units", None, "withheld here; a rounded number will do")
    else:
        size = f"{table.n_records:,}"
        yield Field("privacy_loss.number_of_privacy_units", size, "round it where the size is not public")
    if decision.epsilon is None:
        yield Field("privacy_loss.privacy_parameters.epsilon", None, "no epsilon keeps the limits")
    else:
        yield Field("privacy_loss.privacy_parameters.epsilon", f"{decision.epsilon:.12g}")
    delta = None if setting.pure else f"{setting.delta:g}"
    yield Field("privacy_loss.privacy_parameters.delta", delta or "not applicable")
    yield Field("privacy_loss.privacy_parameters.rho", _find_rho(decision) or "not applicable")
    yield Field("privacy_loss.privacy_parameters_details", _explain_epsilon(decision))


def model_fields(release_type: str = "One release") -> Iterator[Field]:
    """The fields on how a table is made and who is trusted, the same for every release of a frequency table."""
    yield Field("deployment_model.model_name", "Central")
    yield Field("deployment_model.model_name_details", "A curator holds the records and adds noise to their counts")
    yield Field("deployment_model.trust_assumptions", "The curator is trusted with the records", "add who has access")
    yield Field("deployment_model.actors", None, "curator, reviewers, and those who use what is published")
    yield Field("deployment_model.release_type", release_type, "change it where the table is published again")
    yield Field("deployment_model.release_type_details", None, "other uses that are planned of the same records")
    yield Field("deployment_model.data_source_type", "Static", "change it where records come in over time")
    yield Field("deployment_model.data_source_type_details")
    yield Field("deployment_model.access_type", "Non-interactive")
    yield Field("deployment_model.access_type_details", "A table is published; nobody queries the records")


def _implementation_fields(decision: Decision, preparation: Sequence[str], public: bool) -> Iterator[Field]:
    prepared = "; ".join(preparation)
    steps = [f"Preparation: {prepared}"] if prepared else []
    if decision.chosen_from_data:
        steps.append("Epsilon was chosen by computing risks on the raw data; that loss of privacy is not accounted for")
    steps.append("Risks were assessed on the raw data before the release")
    yield Field("implementation.preprocessing_and_hyperparameter_tuning", ". ".join(steps))
    formula = FORMULAS[decision.setting.name]
    scale = f"; {describe_scale(decision.setting.at(decision.epsilon))}" if decision.epsilon is not None else ""
    yield Field(
        "implementation.mechanisms", f"{formula}{scale}", "add the program that adds the noise, and how it is secured"
    )
    many = len(decision.asked.table.sensitive)
    composition = "One table, whose counts share no record (parallel composition)"
    if many > 1:
        composition = f"{many} tables of the same records, each at this epsilon (sequential composition)"
    yield Field("implementation.composition", composition, "add other releases")
    yield Field("implementation.post_processing", describe_threshold(decision.setting.threshold))
    yield Field("implementation.justification", _justify(decision))
    yield Field("implementation.utility", _describe_utility(decision, public))
    yield Field("implementation.additional_information", None, "where the table is published")


def _describe_table(table: FrequencyTable) -> str:
    return f"Frequency table of {', '.join(table.sensitive)} by {', '.join(table.quasi_identifiers)}"


def _list_unprotected(decision: Decision) -> str | None:
    """What a release would show of the data without noise; None where this cannot be told."""
    table = decision.asked.table
    domains = read_domains(table)
    if not domains:
        return None
    observed = [domain.name for domain in domains if not domain.declared]
    observed += [attribute.name for attribute in table.attributes if not attribute.declared]
    parts = [f"the values that occur of {', '.join(observed)}"] if observed else []
    if decision.asked.cells == "observed":
        parts.append("which cells hold records")
    if decision.chosen_from_data:
        parts.append("epsilon, which was chosen from the data")
    elif decision.kind != "open":
        parts.append("whether the limits are kept, which was found from the data")
    if decision.asked.delta_from_data:
        parts.append("delta, which was set from the number of records")
    if table.missing == "error" or table.outside == "error":
        parts.append("that no record was refused, which was found from the data")
    parts += [sentence.removesuffix(".") for sentence in decision.asked.disclosures]
    return "; ".join(parts) or "none"


def _find_rho(decision: Decision) -> str | None:
    if decision.epsilon is None:
        return None
    mechanism = decision.setting.at(decision.epsilon)
    return f"{mechanism.rho:.6g}" if isinstance(mechanism, DiscreteGaussian) else None


def _explain_epsilon(decision: Decision) -> str:
    limits = decision.asked.describe_limits()
    if decision.kind == "recommended":
        return f"The largest epsilon with {limits}"
    if decision.kind == "none":
        return f"No epsilon gives {limits}"
    return f"Given beforehand; checked for {limits}" if limits else "Given beforehand"


def _justify(decision: Decision) -> str:
    return (
        f"{_explain_epsilon(decision)}. Measured was the {decision.question.name}, of the homogeneity attack, for "
        f"{', '.join(decision.asked.table.sensitive)}"
    )


def _describe_utility(decision: Decision, public: bool) -> str | None:
    trade_off = decision.trade_off
    if trade_off is None or decision.epsilon is None:
        return None
    if public:
        return f"Mean TVD of {trade_off.way}-way marginals, required to be at most {trade_off.max_tvd:g}"
    return f"Mean TVD of {trade_off.way}-way marginals: {trade_off.at(decision.epsilon):.3g}"
