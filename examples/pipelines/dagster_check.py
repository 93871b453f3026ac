"""Dagster: a check that blocks everything that is made from the table."""

from __future__ import annotations

from dagster import AssetCheckResult, asset_check
from gate import run_gate


@asset_check(asset="people", blocking=True)
def people_are_within_the_limits() -> AssetCheckResult:
    return AssetCheckResult(passed=run_gate("people.csv", "risk.json"))
