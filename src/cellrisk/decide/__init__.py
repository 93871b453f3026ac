"""Which epsilon: limits, policies, the search for it, and what noise leaves of a table's use."""
