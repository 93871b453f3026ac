"""The record of repeated releases: who was covered, what was released at which loss, and what may still be spent."""

from cellrisk.ledger.book import Ledger
from cellrisk.ledger.entry import Cohort, Entry, Limit, ReleasedFile
from cellrisk.ledger.verification import Verification

__all__ = ["Cohort", "Entry", "Ledger", "Limit", "ReleasedFile", "Verification"]
