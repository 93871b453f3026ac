"""How much does the homogeneity attack still reveal at this epsilon, and which epsilon should I choose?

    import cellrisk as cr
    table = cr.tabulate("adult.parquet", quasi_identifiers=["age", "sex"], sensitive="income", bins={"age": 5})
    print(cr.assess(table, cr.Laplace(epsilon=1.0)))

Names load when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cellrisk.version import __version__ as __version__

if TYPE_CHECKING:
    from cellrisk import datasets
    from cellrisk.accounting import Composition, Loss, compose
    from cellrisk.assessment import Assessment, assess
    from cellrisk.auditing import Audit, audit
    from cellrisk.averaging import Averaging, average
    from cellrisk.cells import Cells
    from cellrisk.choice import Choice, Policy, choose
    from cellrisk.curves import RiskCurve, curve
    from cellrisk.errors import CellriskError
    from cellrisk.explanation import Explanation, explain
    from cellrisk.ledger import Ledger
    from cellrisk.mechanisms import (
        AnalyticGaussian,
        DiscreteGaussian,
        Gaussian,
        Geometric,
        Laplace,
        Mechanism,
        ProbabilisticGaussian,
        mechanism,
    )
    from cellrisk.profiles import Profiles
    from cellrisk.releasing import Release, release
    from cellrisk.reporting import Report, report
    from cellrisk.sequences import Plan, RiskSequence, Step, assess_sequence, largest_epsilon, plan
    from cellrisk.simulation import Simulation, simulate
    from cellrisk.tables import FrequencyTable, tabulate
    from cellrisk.usefulness import Utility, utility


_HOME = {
    "datasets": "cellrisk.datasets",
    "Composition": "cellrisk.accounting",
    "Loss": "cellrisk.accounting",
    "compose": "cellrisk.accounting",
    "Assessment": "cellrisk.assessment",
    "assess": "cellrisk.assessment",
    "Audit": "cellrisk.auditing",
    "audit": "cellrisk.auditing",
    "Averaging": "cellrisk.averaging",
    "average": "cellrisk.averaging",
    "Cells": "cellrisk.cells",
    "Choice": "cellrisk.choice",
    "choose": "cellrisk.choice",
    "RiskCurve": "cellrisk.curves",
    "curve": "cellrisk.curves",
    "CellriskError": "cellrisk.errors",
    "Explanation": "cellrisk.explanation",
    "explain": "cellrisk.explanation",
    "Ledger": "cellrisk.ledger",
    "AnalyticGaussian": "cellrisk.mechanisms",
    "DiscreteGaussian": "cellrisk.mechanisms",
    "Gaussian": "cellrisk.mechanisms",
    "Geometric": "cellrisk.mechanisms",
    "Laplace": "cellrisk.mechanisms",
    "Mechanism": "cellrisk.mechanisms",
    "ProbabilisticGaussian": "cellrisk.mechanisms",
    "mechanism": "cellrisk.mechanisms",
    "Policy": "cellrisk.choice",
    "Profiles": "cellrisk.profiles",
    "Release": "cellrisk.releasing",
    "release": "cellrisk.releasing",
    "Report": "cellrisk.reporting",
    "report": "cellrisk.reporting",
    "Plan": "cellrisk.sequences",
    "RiskSequence": "cellrisk.sequences",
    "Step": "cellrisk.sequences",
    "assess_sequence": "cellrisk.sequences",
    "largest_epsilon": "cellrisk.sequences",
    "plan": "cellrisk.sequences",
    "Simulation": "cellrisk.simulation",
    "simulate": "cellrisk.simulation",
    "FrequencyTable": "cellrisk.tables",
    "tabulate": "cellrisk.tables",
    "Utility": "cellrisk.usefulness",
    "utility": "cellrisk.usefulness",
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
