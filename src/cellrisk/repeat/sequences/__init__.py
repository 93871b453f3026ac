"""Releases one after the other to the same people: the risk along the way, and planning the next one."""

from cellrisk.repeat.sequences.assessing import Plan, assess_sequence, plan
from cellrisk.repeat.sequences.next_epsilon import NextEpsilon, largest_epsilon
from cellrisk.repeat.sequences.sequence_result import Overall, Released, RiskSequence
from cellrisk.repeat.sequences.steps import Step

__all__ = [
    "NextEpsilon",
    "Overall",
    "Plan",
    "Released",
    "RiskSequence",
    "Step",
    "assess_sequence",
    "largest_epsilon",
    "plan",
]
