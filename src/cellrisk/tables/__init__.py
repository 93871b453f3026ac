"""Tables: from records to counts. The only room that knows an engine."""

from cellrisk.tables.table import Attribute, FrequencyTable, Summary
from cellrisk.tables.tabulation import tabulate

__all__ = ["Attribute", "FrequencyTable", "Summary", "tabulate"]
