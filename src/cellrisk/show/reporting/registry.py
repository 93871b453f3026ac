"""The fields of a record in a registry of differential privacy deployments, filled where this report knows the answer.

The fields and their order are those of the privacy deployments registry of OpenDP, whose schema and template are in
the repository opendp/deployments-registry-data: schemas/deployments-schema.yaml and
tests/good_deployments/template.yaml, as of commit 057e5d81cf60. The schema goes back to research of Ghazi, Nanayakkara
and Vadhan. What only the publisher knows is left to fill.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cellrisk.show.reporting.blocks import Section, TableBlock

TO_FILL = "to fill"
NOT_APPLICABLE = "not applicable"
LISTS = ("basic.data_curators", "administrative.registry_authors")
VERSION = "commit 057e5d81cf60 of opendp/deployments-registry-data"


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


TEMPLATE = (
    Field("basic.name"),
    Field("basic.data_curators.data_curator_name"),
    Field("basic.data_curators.data_curator_type", None, "Government, Industry or Nonprofit"),
    Field("basic.description"),
    Field("basic.intended_use"),
    Field("basic.data_product_type", "Summary statistics"),
    Field("basic.data_product_region"),
    Field("basic.data_product_sector"),
    Field("basic.publication_date", None, "year, month, day"),
    Field("dp_variant.variant_name"),
    Field("dp_variant.data_domain", None, "add which records were eligible"),
    Field("dp_variant.unprotected_quantities"),
    Field("privacy_loss.privacy_unit", "Record", "person, where each person has one record"),
    Field("privacy_loss.privacy_unit_details"),
    Field("privacy_loss.number_of_privacy_units", None, "a rounded number will do"),
    Field("privacy_loss.privacy_parameters.epsilon"),
    Field("privacy_loss.privacy_parameters.delta"),
    Field("privacy_loss.privacy_parameters.rho"),
    Field("privacy_loss.privacy_parameters_details"),
    Field("deployment_model.model_name", "Central"),
    Field("deployment_model.model_name_details", "A curator holds the records and adds noise to their counts"),
    Field("deployment_model.trust_assumptions", "The curator is trusted with the records", "add who has access"),
    Field("deployment_model.actors", None, "curator, reviewers, and those who use what is published"),
    Field("deployment_model.release_type", "One release", "change it where the table is published again"),
    Field("deployment_model.release_type_details", None, "other uses that are planned of the same records"),
    Field("deployment_model.data_source_type", "Static", "change it where records come in over time"),
    Field("deployment_model.data_source_type_details"),
    Field("deployment_model.access_type", "Non-interactive"),
    Field("deployment_model.access_type_details", "A table is published; nobody queries the records"),
    Field("implementation.preprocessing_and_hyperparameter_tuning"),
    Field("implementation.mechanisms", None, "add the program that adds the noise, and how it is secured"),
    Field("implementation.composition"),
    Field("implementation.post_processing"),
    Field("implementation.justification"),
    Field("implementation.utility"),
    Field("implementation.additional_information"),
    Field("administrative.evidence_sources", None, "where the release and its method are described"),
    Field("administrative.status", "Draft"),
    Field("administrative.registry_authors"),
    Field("administrative.tier", None, "1, 2 or 3, by how much is filled in"),
)
"""Every field of the registry's template, in its order, with what holds for any release of a frequency table."""


def fill_fields(known: Mapping[str, str | None], remarks: Mapping[str, str]) -> tuple[Field, ...]:
    """The template with the values that are known, and with other remarks than its own."""
    return tuple(
        replace(field, value=known.get(field.path, field.value), remark=remarks.get(field.path, field.remark))
        for field in TEMPLATE
    )


def remark_on(public: bool) -> dict[str, str]:
    """What to bear in mind in every record of a report; the number of people is withheld from the public."""
    people = "withheld here; a rounded number will do" if public else "round it where the size is not public"
    return {"privacy_loss.number_of_privacy_units": people, "implementation.composition": "add other releases"}


def registry_section(fields: Sequence[Field]) -> Section:
    """Annex: a record to be copied into the registry, once its gaps are filled."""
    filled = sum(field.value is not None for field in fields)
    lead = (
        f"A record for the OpenDP registry of differential privacy deployments ({VERSION}): {filled} of {len(fields)} "
        f"fields can be filled from this report, the others are marked \u201c{TO_FILL}\u201d. --registry record.yaml "
        "writes it to a file of its own.",
    )
    rows = tuple((field.path, field.describe()) for field in fields)
    table = TableBlock("Fields of the record", ("Field", "Value"), rows, texts=(0, 1))
    return Section("registry", "Annex: record for the deployments registry", lead, (table,))


def write_record(fields: Sequence[Field], slug: str) -> str:
    """A record as YAML, as the registry's template has it."""
    lines = [f"url_slug: {_write_text(slug)}", "deployment:"]
    open_path: list[str] = []
    for field in fields:
        if field.value == NOT_APPLICABLE:
            continue  # the template has only the parameters that there are
        *parents, name = field.path.split(".")
        shared = 0
        while shared < min(len(parents), len(open_path)) and parents[shared] == open_path[shared]:
            shared += 1
        lines += [f"{'  ' * (depth + 1)}{parents[depth]}:" for depth in range(shared, len(parents))]
        first = shared < len(parents)
        open_path = parents
        indent = "  " * (len(parents) + 1)
        if ".".join(parents) in LISTS:
            indent += "- " if first else "  "
        value = _write_value(field)
        if field.path in LISTS:
            lines += [f"{indent}{name}:", f"{indent}  - {value}"]
        else:
            lines.append(f"{indent}{name}: {value}")
    return "\n".join(lines) + "\n"


def _write_value(field: Field) -> str:
    if field.path.startswith("privacy_loss.privacy_parameters.") and field.value is not None:
        return _write_number(float(field.value))
    remark = f"  # {field.remark}" if field.remark else ""
    return f"{_write_text(TO_FILL if field.value is None else field.value)}{remark}"


def _write_text(text: str) -> str:
    """A text in double quotes; what is not printable is escaped, beyond 16 bits in YAML's own way, which JSON lacks."""
    quoted = json.dumps(text, ensure_ascii=False)
    escapes = {sign: f"\\u{ord(sign):04x}" if ord(sign) < 1 << 16 else f"\\U{ord(sign):08x}" for sign in set(quoted)}
    return "".join(sign if sign.isprintable() else escapes[sign] for sign in quoted)


def _write_number(number: float) -> str:
    """A number that YAML 1.1 reads as one too: it wants a full stop before an exponent."""
    mantissa, exponent, power = repr(number).partition("e")
    return f"{mantissa if '.' in mantissa or not exponent else mantissa + '.0'}{exponent}{power}"
