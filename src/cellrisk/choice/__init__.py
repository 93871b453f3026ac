"""Choosing epsilon: what is required, which epsilons meet it, and what they leave of the table's use."""

from cellrisk.choice.choosing import CHOICE_NOTE, Alternative, Choice, Option, choose, weigh
from cellrisk.choice.policies import Policies
from cellrisk.choice.policy import Policy
from cellrisk.choice.requirement import Requirement
from cellrisk.choice.tradeoff import TradeOff, find_trade_off

__all__ = [
    "CHOICE_NOTE",
    "Alternative",
    "Choice",
    "Option",
    "Policies",
    "Policy",
    "Requirement",
    "TradeOff",
    "choose",
    "find_trade_off",
    "weigh",
]
