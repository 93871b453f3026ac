"""How the privacy losses of several releases compose: each way beside the others, and the tightest that is valid."""

from cellrisk.repeat.accounting.ceilings import compose_ceiling
from cellrisk.repeat.accounting.composition import Composed, Composition, compose
from cellrisk.repeat.accounting.loss import FLAVOURS, Loss
from cellrisk.repeat.accounting.operators import OPERATORS

__all__ = ["FLAVOURS", "OPERATORS", "Composed", "Composition", "Loss", "compose", "compose_ceiling"]
