"""How the privacy losses of several releases compose: each way beside the others, and the tightest that is valid."""

from cellrisk.accounting.composition import Composed, Composition, compose
from cellrisk.accounting.loss import FLAVOURS, Loss
from cellrisk.accounting.operators import OPERATORS

__all__ = ["FLAVOURS", "OPERATORS", "Composed", "Composition", "Loss", "compose"]
