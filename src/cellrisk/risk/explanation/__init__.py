"""Explaining a risk: who carries it, and what would help."""

from cellrisk.risk.explanation.explaining import Explanation, explain

__all__ = ["Explanation", "explain"]
