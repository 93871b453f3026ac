"""The words of `Plan`: what one more release would cost and reveal."""

from __future__ import annotations

from cellrisk.repeat.sequences import Plan
from cellrisk.risk.measures import WEIGHTS
from cellrisk.show.wording.ceiling import WORST_CASE, say_most
from cellrisk.show.wording.sequence import say_loss
from cellrisk.system.formatting import CURATOR_NOTE, aligned, change, percent, whole_people

OVERALL = {"max": "largest of the attributes", "sum": "attributes added up"}


def headline(found: Plan) -> str:
    """What a curator can repeat."""
    last, people = found.sequence.rows[-1], found.sequence.n_records
    spent = "" if found.before is None else f"from {say_loss(found.before.cumulative)} "
    before, after = (each.max_records * people for each in found.caused)
    worst = ""
    both = [f"{say_most(each.even_two)}%" for each in found.ceilings if each is not None]
    if len(both) == 2:
        worst = f"the worst case for one record ({WORST_CASE}) {change(both[0], both[1])}, "
    return (
        f"Releasing {last.name} at {last.loss.describe()} would take the cumulative loss {spent}to "
        f"{say_loss(last.cumulative)}, the people revealed only because of their own record "
        f"{change(whole_people(before), whole_people(after))}, {worst}and the overall risk by records "
        f"{change(*(percent(each.max_records) for each in found.overall))}."
    )


def paragraphs(found: Plan) -> list[str]:
    """What is printed below the headline."""
    rows = [
        [words, weights, *(f"{each.value(kind, weights):.4f}" for each in found.overall)]
        for kind, words in OVERALL.items()
        for weights in WEIGHTS
    ]
    caused = (f"{each.max_records:.4f}" for each in found.caused)
    rows.append(["caused by people's own records", "records", *caused])
    worst = [f"{each.even_two:.4f}" for each in found.ceilings if each is not None]
    rows += [["worst case for one record", "-", *worst]] if len(worst) == 2 else []
    table = aligned(["overall risk", "weights", "before", "after"], rows, left=2)
    return [table, "\n".join(found.sequence.statements), CURATOR_NOTE]
