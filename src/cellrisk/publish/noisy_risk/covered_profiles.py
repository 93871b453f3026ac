"""The profiles that a published figure is computed from: those of the records inside what was declared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cellrisk.counts.profiles import Profiles
from cellrisk.errors import InvalidInput
from cellrisk.publish.releasing.domain import read_domain
from cellrisk.publish.releasing.release_result import say_gates, say_left_out

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable


@dataclass(frozen=True, eq=False)
class CoveredProfiles:
    """What was declared, and the profiles of the records inside; the profiles alone are raw data."""

    sensitive: str
    quasi_identifiers: tuple[str, ...]
    profiles: Profiles
    statements: tuple[str, ...]
    """What a reader has to know: whose labels are not declared, who was left out, what decided on a refusal."""

    @property
    def n_levels(self) -> int:
        """The declared number of labels."""
        return self.profiles.n_levels


def cover_profiles(
    table: FrequencyTable,
    sensitive: str | None,
    may_be_missing: str | Sequence[str],
    observed_levels: bool | str | Sequence[str],
) -> CoveredProfiles:
    """The profiles of a table, as far as its records are inside the declared labels.

    How one column is read must not hang on one record, or that record could move every cell: so the labels of all
    columns are declared, as for a release, or those of quasi-identifiers accepted as they occur. The labels of the
    sensitive attribute are always declared, because their number stands in the figure.
    """
    attribute = table.attribute(sensitive)
    if not attribute.declared:
        raise InvalidInput(
            "a figure that may be published needs the declared labels of the sensitive attribute",
            got=f"the labels of '{attribute.name}' are those that occur",
            fix="declare them with levels= (--levels)",
        )
    domain = read_domain(table, sensitive, may_be_missing=may_be_missing, observed_levels=observed_levels)
    said = tuple(_statements(domain.undeclared, table.missing, table.outside))
    return CoveredProfiles(attribute.name, table.quasi_identifiers, domain.cells.profiles(), said)


def _statements(undeclared: Sequence[str], missing: str, outside: str) -> list[str]:
    said = []
    if undeclared:
        said.append(
            f"The labels of {', '.join(undeclared)} are those that occur in the records: the guarantee does not cover "
            "how these columns are read."
        )
    said += say_left_out(missing, outside, "or with a missing value where none was declared")
    return said + say_gates("figure", missing, outside)
