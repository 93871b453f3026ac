"""How much does the homogeneity attack still reveal at this epsilon, and which epsilon should I choose?

    import cellrisk as cr
    table = cr.tabulate("adult.parquet", quasi_identifiers=["age", "sex"], sensitive="income", bins={"age": 5})
    print(cr.assess(table, cr.Laplace(epsilon=1.0)))

Names load when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cellrisk.system.version import __version__ as __version__

if TYPE_CHECKING:
    from cellrisk.counts import datasets
    from cellrisk.counts.cells import Cells
    from cellrisk.counts.profiles import Profiles
    from cellrisk.counts.table import FrequencyTable
    from cellrisk.counts.tabulation import tabulate
    from cellrisk.decide.choosing import Choice, choose
    from cellrisk.decide.policy import Policy
    from cellrisk.decide.usefulness import Utility, utility
    from cellrisk.errors import CellriskError
    from cellrisk.noise.mechanisms import (
        AnalyticGaussian,
        DiscreteGaussian,
        Gaussian,
        Geometric,
        Laplace,
        Mechanism,
        ProbabilisticGaussian,
        mechanism,
    )
    from cellrisk.publish.auditing import Audit, audit
    from cellrisk.publish.releasing import Release, release
    from cellrisk.publish.simulation import Simulation, simulate
    from cellrisk.repeat.accounting import Composition, Loss, compose
    from cellrisk.repeat.averaging import Averaging, average
    from cellrisk.repeat.ledger import Ledger
    from cellrisk.repeat.sequences import Plan, RiskSequence, Step, assess_sequence, largest_epsilon, plan
    from cellrisk.risk.assessment import Assessment, assess
    from cellrisk.risk.curves import RiskCurve, curve
    from cellrisk.risk.explanation import Explanation, explain
    from cellrisk.show.reporting import Report, report


_HOME = {
    "datasets": "cellrisk.datasets",
    "Composition": "cellrisk.repeat.accounting",
    "Loss": "cellrisk.repeat.accounting",
    "compose": "cellrisk.repeat.accounting",
    "Assessment": "cellrisk.risk.assessment",
    "assess": "cellrisk.risk.assessment",
    "Audit": "cellrisk.publish.auditing",
    "audit": "cellrisk.publish.auditing",
    "Averaging": "cellrisk.repeat.averaging",
    "average": "cellrisk.repeat.averaging",
    "Cells": "cellrisk.counts.cells",
    "Choice": "cellrisk.decide",
    "choose": "cellrisk.decide",
    "RiskCurve": "cellrisk.risk.curves",
    "curve": "cellrisk.risk.curves",
    "CellriskError": "cellrisk.errors",
    "Explanation": "cellrisk.risk.explanation",
    "explain": "cellrisk.risk.explanation",
    "Ledger": "cellrisk.repeat.ledger",
    "AnalyticGaussian": "cellrisk.noise.mechanisms",
    "DiscreteGaussian": "cellrisk.noise.mechanisms",
    "Gaussian": "cellrisk.noise.mechanisms",
    "Geometric": "cellrisk.noise.mechanisms",
    "Laplace": "cellrisk.noise.mechanisms",
    "Mechanism": "cellrisk.noise.mechanisms",
    "ProbabilisticGaussian": "cellrisk.noise.mechanisms",
    "mechanism": "cellrisk.noise.mechanisms",
    "Policy": "cellrisk.decide",
    "Profiles": "cellrisk.counts.profiles",
    "Release": "cellrisk.publish.releasing",
    "release": "cellrisk.publish.releasing",
    "Report": "cellrisk.show.reporting",
    "report": "cellrisk.show.reporting",
    "Plan": "cellrisk.repeat.sequences",
    "RiskSequence": "cellrisk.repeat.sequences",
    "Step": "cellrisk.repeat.sequences",
    "assess_sequence": "cellrisk.repeat.sequences",
    "largest_epsilon": "cellrisk.repeat.sequences",
    "plan": "cellrisk.repeat.sequences",
    "Simulation": "cellrisk.publish.simulation",
    "simulate": "cellrisk.publish.simulation",
    "FrequencyTable": "cellrisk.counts",
    "tabulate": "cellrisk.counts",
    "Utility": "cellrisk.decide.usefulness",
    "utility": "cellrisk.decide.usefulness",
}

__all__ = [
    "AnalyticGaussian",
    "Assessment",
    "Audit",
    "Averaging",
    "CellriskError",
    "Cells",
    "Choice",
    "Composition",
    "DiscreteGaussian",
    "Explanation",
    "FrequencyTable",
    "Gaussian",
    "Geometric",
    "Laplace",
    "Ledger",
    "Loss",
    "Mechanism",
    "Plan",
    "Policy",
    "ProbabilisticGaussian",
    "Profiles",
    "Release",
    "Report",
    "RiskCurve",
    "RiskSequence",
    "Simulation",
    "Step",
    "Utility",
    "assess",
    "assess_sequence",
    "audit",
    "average",
    "choose",
    "compose",
    "curve",
    "datasets",
    "explain",
    "largest_epsilon",
    "mechanism",
    "plan",
    "release",
    "report",
    "simulate",
    "tabulate",
    "utility",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'cellrisk' has no attribute {name!r}")
    module = importlib.import_module(_HOME[name])
    value = module if _HOME[name] == f"cellrisk.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
