"""The words of `TogetherRelease`: several tables that were released together, and their guarantee."""

from __future__ import annotations

from cellrisk.repeat.together.releasing import TogetherRelease
from cellrisk.system.formatting import aligned, claim


def headline(released: TogetherRelease) -> str:
    """What was released, and with which guarantee."""
    counts = sum(len(each.frame) for each in released.releases)
    excepted = any(each.exceptions for each in released.releases)
    return (
        f"{len(released.releases)} tables of {released.sensitive} about the same people, {counts:,} counts in all: "
        f"differentially private together, {released.loss.describe()}"
        f"{', with exceptions that their descriptions name' if excepted else ''}."
    )


def paragraphs(released: TogetherRelease) -> list[str]:
    """What is printed below the headline."""
    rows = [
        [
            *(f"{table.number}: {table.name or table.describe()}", release.mechanism.name),
            *(claim(release.mechanism.epsilon), f"{release.measurement.scale:.6g}", f"{len(release.frame):,}"),
            released.name_of(table),
        ]
        for table, release in zip(released.tables, released.releases, strict=True)
    ]
    uncovered = dict.fromkeys(line for release in released.releases for line in release.not_covered)
    obeyed = dict.fromkeys(release.policies.describe() for release in released.releases if release.policies)
    head = ["table", "mechanism", "epsilon", "scale", "counts", "file"]
    return [aligned(head, rows), "\n".join([*released.statements, *uncovered]), *obeyed]
