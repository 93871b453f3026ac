"""Tables: from records to counts. The only room that knows an engine."""

from cellrisk.tables.summary import Summary
from cellrisk.tables.table import Attribute, FrequencyTable
from cellrisk.tables.tabulation import tabulate

__all__ = ["Attribute", "FrequencyTable", "Summary", "tabulate"]
