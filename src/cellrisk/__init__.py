"""How much does the homogeneity attack still reveal at this epsilon, and which epsilon should I choose?

    import cellrisk as cr
    table = cr.tabulate("adult.parquet", quasi_identifiers=["age", "sex"], sensitive="income", bins={"age": 5})
    print(cr.assess(table, cr.Laplace(epsilon=1.0)))

Names load when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cellrisk import datasets
    from cellrisk.assessment import Assessment, assess
    from cellrisk.errors import CellriskError
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
    from cellrisk.tables import FrequencyTable, tabulate

__version__ = "0.1.0"

_HOME = {
    "datasets": "cellrisk.datasets",
    "Assessment": "cellrisk.assessment",
    "assess": "cellrisk.assessment",
    "CellriskError": "cellrisk.errors",
    "AnalyticGaussian": "cellrisk.mechanisms",
    "DiscreteGaussian": "cellrisk.mechanisms",
    "Gaussian": "cellrisk.mechanisms",
    "Geometric": "cellrisk.mechanisms",
    "Laplace": "cellrisk.mechanisms",
    "Mechanism": "cellrisk.mechanisms",
    "ProbabilisticGaussian": "cellrisk.mechanisms",
    "mechanism": "cellrisk.mechanisms",
    "Profiles": "cellrisk.profiles",
    "FrequencyTable": "cellrisk.tables",
    "tabulate": "cellrisk.tables",
}

__all__ = [
    "AnalyticGaussian",
    "Assessment",
    "CellriskError",
    "DiscreteGaussian",
    "FrequencyTable",
    "Gaussian",
    "Geometric",
    "Laplace",
    "Mechanism",
    "ProbabilisticGaussian",
    "Profiles",
    "assess",
    "datasets",
    "mechanism",
    "tabulate",
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
