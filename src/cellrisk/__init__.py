"""How much does the homogeneity attack still reveal at this epsilon, and which epsilon should I choose?

    import cellrisk as cr
    table = cr.tabulate("adult.parquet", quasi_identifiers=["age", "sex"], sensitive="income", bins={"age": 5})
    print(cr.assess(table, epsilon=1.0))

Names load when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cellrisk.system.version import __version__ as __version__

if TYPE_CHECKING:
    from cellrisk.counts import datasets
    from cellrisk.counts.counting import tabulate
    from cellrisk.counts.table import FrequencyTable
    from cellrisk.decide.choosing import Choice, choose
    from cellrisk.decide.policies import Policy
    from cellrisk.decide.usefulness import Utility, utility
    from cellrisk.errors import CellriskError, InvalidInput, UnknownName
    from cellrisk.noise.from_opendp import from_opendp
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
    from cellrisk.noise.perturbations import Perturbation, read_perturbation
    from cellrisk.publish.auditing import Audit, audit
    from cellrisk.publish.dp_risk import publish_risk
    from cellrisk.publish.dp_risk.private_choice import choose_privately
    from cellrisk.publish.releasing import Release, release
    from cellrisk.publish.simulation import Simulation, simulate
    from cellrisk.repeat.accounting.composition import compose
    from cellrisk.repeat.accounting.loss import Loss
    from cellrisk.repeat.averaging import average
    from cellrisk.repeat.ledger import Ledger
    from cellrisk.repeat.sequences import Step, assess_sequence, largest_epsilon
    from cellrisk.repeat.together import TogetherAssessment, assess_together
    from cellrisk.repeat.together.releasing import release_together
    from cellrisk.repeat.together.splitting import split_budget
    from cellrisk.risk.assessment import Assessment, assess
    from cellrisk.risk.ceilings import ceiling
    from cellrisk.risk.curves import RiskCurve, curve
    from cellrisk.risk.explanation import explain
    from cellrisk.risk.perturbed import assess_perturbation
    from cellrisk.risk.priors import Priors
    from cellrisk.show.reporting import report


# Where each public name lives; the list for type checkers, above, says the same.
_HOMES = {
    "counts.counting": "tabulate",
    "counts.table": "FrequencyTable",
    "decide.choosing": "Choice choose",
    "decide.policies": "Policy",
    "decide.usefulness": "Utility utility",
    "errors": "CellriskError InvalidInput UnknownName",
    "noise.from_opendp": "from_opendp",
    "noise.mechanisms": (
        "AnalyticGaussian DiscreteGaussian Gaussian Geometric Laplace Mechanism ProbabilisticGaussian mechanism"
    ),
    "noise.perturbations": "Perturbation read_perturbation",
    "publish.auditing": "Audit audit",
    "publish.dp_risk": "publish_risk",
    "publish.dp_risk.private_choice": "choose_privately",
    "publish.releasing": "Release release",
    "publish.simulation": "Simulation simulate",
    "repeat.accounting.composition": "compose",
    "repeat.accounting.loss": "Loss",
    "repeat.averaging": "average",
    "repeat.ledger": "Ledger",
    "repeat.sequences": "Step assess_sequence largest_epsilon",
    "repeat.together": "TogetherAssessment assess_together",
    "repeat.together.releasing": "release_together",
    "repeat.together.splitting": "split_budget",
    "risk.assessment": "Assessment assess",
    "risk.ceilings": "ceiling",
    "risk.curves": "RiskCurve curve",
    "risk.explanation": "explain",
    "risk.perturbed": "assess_perturbation",
    "risk.priors": "Priors",
    "show.reporting": "report",
}
_HOME = {name: f"cellrisk.{module}" for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "AnalyticGaussian",
    "Assessment",
    "Audit",
    "CellriskError",
    "Choice",
    "DiscreteGaussian",
    "FrequencyTable",
    "Gaussian",
    "Geometric",
    "InvalidInput",
    "Laplace",
    "Ledger",
    "Loss",
    "Mechanism",
    "Perturbation",
    "Policy",
    "Priors",
    "ProbabilisticGaussian",
    "Release",
    "RiskCurve",
    "Simulation",
    "Step",
    "TogetherAssessment",
    "UnknownName",
    "Utility",
    "assess",
    "assess_perturbation",
    "assess_sequence",
    "assess_together",
    "audit",
    "average",
    "ceiling",
    "choose",
    "choose_privately",
    "compose",
    "curve",
    "datasets",
    "explain",
    "from_opendp",
    "largest_epsilon",
    "mechanism",
    "publish_risk",
    "read_perturbation",
    "release",
    "release_together",
    "report",
    "simulate",
    "split_budget",
    "tabulate",
    "utility",
]


def __getattr__(name: str) -> Any:
    if name == "datasets":
        value = importlib.import_module("cellrisk.counts.datasets")
    elif name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module 'cellrisk' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
