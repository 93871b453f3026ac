"""Releases one after the other to the same people: the risk along the way, and the largest epsilon of the next one."""

from cellrisk.repeat.sequences.next_epsilon import NextEpsilon, largest_epsilon
from cellrisk.repeat.sequences.sequence import Overall, Released, RiskSequence, assess_sequence
from cellrisk.repeat.sequences.steps import Step

__all__ = ["NextEpsilon", "Overall", "Released", "RiskSequence", "Step", "assess_sequence", "largest_epsilon"]
