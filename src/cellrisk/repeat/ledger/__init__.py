"""The record of repeated releases: who was covered, what was released at which loss, and what may still be spent."""

from cellrisk.repeat.ledger.entry import Cohort, Entry, Limit, ReleasedFile
from cellrisk.repeat.ledger.ledger import Ledger
from cellrisk.repeat.ledger.staging import Recovered
from cellrisk.repeat.ledger.verification import Verification

__all__ = ["Cohort", "Entry", "Ledger", "Limit", "Recovered", "ReleasedFile", "Verification"]
