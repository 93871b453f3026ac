"""The words of `NextEpsilon`: which epsilon the next release may have."""

from __future__ import annotations

from cellrisk.repeat.sequences.next_epsilon import NextEpsilon
from cellrisk.show.wording.ceiling import WORST_CASE, say_most
from cellrisk.show.wording.sequence import say_loss
from cellrisk.system.formatting import as_given, round_down


def headline(found: NextEpsilon) -> str:
    """What a curator can repeat."""
    limit = f"keeps the worst case for one record ({WORST_CASE}) at {as_given(found.max_ceiling, 2)}% or below"
    before = f"Before this release it is {say_most(found.before.even_two)}%."
    if found.epsilon is None or found.cumulative is None or found.ceiling is None:
        return f"No epsilon of {found.setting.name} {limit}. {before}"
    if not found.binds:
        return f"Every epsilon of {found.setting.name} up to {found.searched[1]:g} {limit}. {before}"
    shown = as_given(round_down(found.epsilon, found.searched[0]))
    return (
        f"For {found.setting.describe()}, {shown} is the largest epsilon that {limit}. {before} The cumulative loss is "
        f"then {say_loss(found.cumulative)}, and the worst case {say_most(found.ceiling.even_two)}%."
    )


def paragraphs(found: NextEpsilon) -> list[str]:
    """Return nothing: one sentence has it all."""
    return []
