"""The words of `Audit`: what a release disclosed about the people in the original table."""

from __future__ import annotations

import math

from cellrisk.publish.auditing.audit_result import Audit
from cellrisk.publish.auditing.figures import FIGURES
from cellrisk.publish.auditing.realised_disclosure import RealisedDisclosure
from cellrisk.show.wording.perturbed_assessment import say_ceiling
from cellrisk.system.formatting import CURATOR_NOTE, aligned, number_of, percent, whole_people

WHOLE = ("k", "distinct_l")


def headline(audit: Audit) -> str:
    """What a curator can repeat."""
    share, trusted = audit.value(), audit.value("tcap")
    people = f"{audit.n_exposed:,} of {number_of(audit.original.n_records, 'person')}"
    precision = (
        "no cell with people in it shows one value alone"
        if math.isnan(trusted)
        else f"an attacker who believes such cells is right about {percent(trusted)} of the people in them"
    )
    return (
        f"The release gives away the {audit.sensitive} of {people} ({percent(share)}), whose cells show their value "
        f"alone; {precision}. The original as it is would give away {percent(audit.value(of='original'))}, guessing "
        f"from the overall proportions gets {percent(audit.guess_share)}. {say_realised(audit.decision)}"
    )


def paragraphs(audit: Audit) -> list[str]:
    """What is printed below the headline."""
    rows = [[name, _show(name, audit.released[name]), _show(name, audit.raw[name])] for name in FIGURES]
    numbers = aligned(["figure", "released", "original"], rows).splitlines()
    meanings = ["", *(figure.meaning for figure in FIGURES.values())]
    table = [f"{line}  {meaning}".rstrip() for line, meaning in zip(numbers, meanings, strict=True)]
    notes = ["\n".join(audit.notes)] if audit.notes else []
    return [describe_certainty(audit.decision), "\n".join(table), *notes, CURATOR_NOTE]


def say_realised(found: RealisedDisclosure) -> str:
    """The figures to decide by, each with what it means."""
    return " ".join([_say_caused(found), *_say_sure(found)])


def _say_caused(found: RealisedDisclosure) -> str:
    if found.made.perturbation is not None and found.without is not None:
        difference = f"{whole_people(abs(found.caused))} {'fewer' if found.caused >= 0 else 'more'}"
        return (
            f"Had each person's own record been left out in turn, and their count been published anew with "
            f"{found.made.perturbation.name}, {number_of(found.without, 'person')} would have their {found.sensitive} "
            f"given away: {difference}, which is what their own records cause."
        )
    people = int(found.caused)
    number, stand = f"{people:,}" if people else "None", "stands" if people == 1 else "stand"
    alone = f"{number} of those given away {stand} behind a count of {found.smallest} that is shown alone"
    safe = ": without their own record each would have been safe from that" if found.made.mechanism and people else ""
    return f"{alone}{safe}."


def _say_sure(found: RealisedDisclosure) -> list[str]:
    """What the attacker is sure of, at the highest certainty; nothing if that is not known."""
    if not found.certainty:
        return []
    surest = found.certainty[-1]
    return [
        f"Given these counts, somebody who knows the method and does the mathematics names the {found.sensitive} "
        f"of {surest.people} rightly and with at least {100 * surest.certainty:g}% certainty."
    ]


def describe_certainty(found: RealisedDisclosure) -> str:
    """What the attacker names, in a sentence for each certainty."""
    if not found.certainty:
        return f"What an attacker can be sure of is not computed: {found.unknown}."
    lines = []
    for row in found.certainty:
        sure = f"{100 * row.certainty:g}%"
        if row.precision is None:
            lines.append(f"No {found.sensitive} is named with {sure} certainty or more.")
            continue
        lines.append(
            f"With {sure} certainty or more: {row.people} named rightly, of {round(row.named):,} named; "
            f"right {percent(row.precision)} of the time."
        )
    lines.append("" if found.belief is None else f"The attacker's belief: {found.belief.describe()}.")
    if found.worst is not None:
        lines.append(say_ceiling(*found.worst))
    elif found.ceiling is not None:
        lines.append(found.ceiling.of_two)
    return "\n".join(lines)


def notes(audit: Audit) -> list[str]:
    """What was assumed about the release, and what is unusual about it."""
    facts = audit.facts
    number = {name: f"{count:,}" for name, count in facts.items()}
    said = {
        "contradicted": "The release says itself how it was made: that is believed, and not the mechanism that was "
        "given.",
        "changed": "The file is not the one that the description beside it was written for (another sha256): nothing "
        "that it says is believed.",
        "negative": f"Negative counts, which unbiased noise makes, are read as zero: {number['negative']} of "
        f"{number['counts']}.",
        "fractional": f"Fractional counts show their label wherever they are above zero: {number['fractional']} of "
        f"{number['counts']}.",
        "nothing": "The release shows no positive count.",
        "unknown": f"Cells that the release shows and nobody in the original is in: {number['unknown']} of "
        f"{number['shown']}.",
        "absent": f"Cells of the original that are not shown: {number['absent']}, with {number['hidden']} of its "
        "records.",
        "left_out": f"Rows of the release with missing values are left out, as in the original: {number['left_out']}.",
        "all_different": "Each row of the release is read as one record, and no two are alike; if it holds counts, "
        "name their column.",
    }
    return [sentence for name, sentence in said.items() if facts[name]]


def _show(name: str, value: float) -> str:
    if math.isnan(value):
        return "-"
    if FIGURES[name].is_count:
        return f"{int(value):,}"
    if name in WHOLE:
        return f"{value:,g}" if value == int(value) else f"{value:,.4f}"
    return f"{value:.4f}"
