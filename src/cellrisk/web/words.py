"""What the server was started with, in the words of the page: titles of choices, policies, the ledger."""

from __future__ import annotations

from typing import Any

import cellrisk as cr
from cellrisk.counts.schema import MISSING_RULES
from cellrisk.decide.policies import Policies
from cellrisk.noise.mechanisms import MECHANISMS, NEIGHBOURS
from cellrisk.risk.measures import FORMS, MEASURES, WEIGHTS
from cellrisk.web.settings import Settings

TITLES = {
    "laplace": "Laplace",
    "gaussian": "Gaussian, classical",
    "gaussian-pdp": "Gaussian, probabilistic DP",
    "gaussian-analytic": "Gaussian, analytic",
    "geometric": "Geometric (whole numbers)",
    "discrete-gaussian": "Discrete Gaussian (whole numbers)",
    "local": "Local: this very table",
    "expected": "Expected: tables like this one",
    "shrinkage": "Shrinkage: shares drawn to the overall ones",
    "marginal": "Marginal: cell sizes drawn anew",
    "marginal_shrinkage": "Marginal shrinkage: the table as a whole",
    "published": "As the paper prints it",
    "exact": "Any value revealed",
    "tight": "Own value revealed",
    "uniform": "Each cell alike",
    "records": "By people",
    "add-remove": "One person more or less",
    "replace": "One person changed",
    "category": "are a value of their own",
    "drop": "drop the row",
    "error": "refuse the file",
}
RELEASABLE = ("geometric", "discrete-gaussian")
CHOICES: dict[str, Any] = {
    "mechanism": MECHANISMS,
    "measure": MEASURES,
    "form": FORMS,
    "weights": WEIGHTS,
    "neighbours": NEIGHBOURS,
    "missing": MISSING_RULES,
}


def describe_server(settings: Settings, policies: Policies) -> dict[str, Any]:
    """Return what the server was started with, and the choices that each field of the page offers."""
    return {
        "version": cr.__version__,
        "folder": settings.folder is not None,
        "ledger": settings.ledger is not None,
        "policy": policies.describe() if policies else None,
        "locks": describe_locks(policies),
        "upload_limit": settings.upload_limit,
        "upload_limit_text": write_size(settings.upload_limit),
        "choices": {field: [[name, TITLES[name]] for name in names] for field, names in CHOICES.items()},
        "releasable": list(RELEASABLE),
    }


def describe_locks(policies: Policies) -> dict[str, Any]:
    """Return what the policies fix: the words of the risk that the first of them limits, and the tightest limits."""
    words: dict[str, str] = {}
    limits: dict[str, float] = {}
    for obeyed in (policies.to_dict() or {"obeyed": []})["obeyed"]:
        risk = {name: obeyed["risk"][name] for name in ("measure", "form", "weights")}
        on_risk = {"max_risk", "max_people", "margin"} & set(obeyed["limits"])
        words = words or (risk if on_risk else {})
        for name, most in obeyed["limits"].items():
            if name != "max_posterior" and (name not in on_risk or risk == words):
                limits[name] = min(most, limits.get(name, most))
    return {"words": words, "limits": limits}


def write_size(number: float) -> str:
    """Write a number of bytes.

    >>> write_size(2_000_000_000), write_size(1_234)
    ('2 GB', '1.23 kB')
    """
    for unit in ("bytes", "kB", "MB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:,.3g} GB"


def describe_ledger(place: str) -> dict[str, Any]:
    """Return the releases of a ledger in their order, what each cohort has spent, and whether all is as written."""
    from cellrisk.show.wording.ledger_entry import say_budget

    with cr.Ledger(place) as ledger:
        verification = ledger.verify()
        whole = verification.ok
        return {
            "entries": [
                {"digest": entry.digest, "words": [entry.time[:16].replace("T", " "), entry.headline, entry.purpose]}
                for entry in (ledger.entries(kind="release") if whole else ())
            ],
            "cohorts": [say_budget(ledger, cohort) for cohort in ledger.state().declared] if whole else [],
            "verified": whole,
            "sentence": verification.headline,
            "chain": f"The chain of entries is {'unbroken' if whole else 'broken: the ledger was changed by hand'}.",
        }
