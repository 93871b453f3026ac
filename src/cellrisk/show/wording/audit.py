"""The words of `Audit`: what a release disclosed about the people in the original table."""

from __future__ import annotations

import math

from cellrisk.publish.auditing import Audit
from cellrisk.publish.auditing.figures import FIGURES
from cellrisk.show.wording.attackers import inferred, name_attack, name_table, share
from cellrisk.system.formatting import CURATOR_NOTE, aligned, number_of, percent

WHOLE, OF = ("k", "distinct_l"), ("released", "original")
NOTES_SHOWN = 2
SHOWN = {
    "homogeneity_tight_records": "revealed by the homogeneity attack",
    "plurality": "named correctly by the largest count of their group",
    "tcap": "right, of those named by the homogeneity attack (TCAP)",
}
"""Figures of the first screen, with what they say."""


def headline(audit: Audit) -> str:
    """Return what a curator can repeat."""
    people = f"{audit.n_exposed:,} of {_count(audit, audit.original.n_records)} ({percent(audit.value())})"
    revealed = f"The release reveals the '{audit.sensitive}' of {people}: their group shows their value alone."
    alone = [] if audit.made.perturbation else [_say_alone(audit)]
    return " ".join([revealed, *alone, _say_inferred(audit)])


def screen(audit: Audit) -> list[str]:
    """Return what is printed first: who is revealed, the main figures beside those of the original, what to do next."""
    rows = [[what, *(_percent(audit.value(name, of)) for of in OF)] for name, what in SHOWN.items()]
    rows.append(["smallest group (k)", *(_show("k", audit.value("k", of)) for of in OF)])
    return [
        f"{name_table(audit.original, audit.sensitive)}\n{headline(audit).replace('. ', '.' + chr(10))}",
        aligned([f"of the {audit.original.revealed_name}", "release", "original"], rows),
        *(["\n".join(audit.notes[:NOTES_SHOWN])] if audit.notes else []),
        f"Every figure: --all   Groups that reveal most: --top 20   Check before a release: cellrisk assess ...\n"
        f"{CURATOR_NOTE}",
    ]


def paragraphs(audit: Audit) -> list[str]:
    """Return the rest: what the attacker infers, and every figure with its meaning."""
    rows = [[name, _show(name, audit.released[name]), _show(name, audit.raw[name])] for name in FIGURES]
    numbers = aligned(["figure", "released", "original"], rows).splitlines()
    meanings = ["", *(figure.meaning for figure in FIGURES.values())]
    table = [f"{line}  {meaning}".rstrip() for line, meaning in zip(numbers, meanings, strict=True)]
    bound = [] if audit.ceiling is None else [audit.ceiling.headline]
    return ["\n".join(part) for part in (_list_attacks(audit), table, bound, audit.notes[NOTES_SHOWN:]) if part]


def _say_alone(audit: Audit) -> str:
    """Return how many people are shown alone as the smallest count, which noise makes of nobody else."""
    people = audit.facts["alone"]
    safe = ", and would not be without their own record" if audit.made.mechanism and people else ""
    number, are = f"{people:,}" if people else "None", "is" if people == 1 else "are"
    return f"{number} of them {are} shown alone as a count of {audit.made.smallest}{safe}."


def _say_inferred(audit: Audit) -> str:
    row = next((row for row in audit.attackers if row["attack"] == "informed" and "union" not in row), None)
    if row is None:
        return f"What an informed attacker infers is not computed: {audit.unknown}."
    return inferred(audit.sensitive, _count(audit, row["revealed"]), row["certainty"])


def _count(audit: Audit, number: float) -> str:
    """Return a number of people, or of records if people may have several."""
    return number_of(number, "person" if audit.original.unit.contributions == 1 else "record")


def _list_attacks(audit: Audit) -> list[str]:
    """Return a row for each attack on the released counts."""
    people = audit.original.n_records
    rows = [
        [name_attack(row), f"{row['revealed']:,.6g}", share(row["revealed"] / people)]
        + [f"{row[part]:,.6g}" if part in row else "-" for part in ("own", "learnt")]
        for row in audit.attackers
    ]
    heads = ["named correctly", audit.original.revealed_name, "share", "own record", "learnt"]
    return [aligned(heads, rows)] if rows else []


def _percent(value: float) -> str:
    return "-" if math.isnan(value) else share(value)


def notes(audit: Audit) -> list[str]:
    """What was assumed about the release, and what is unusual about it."""
    facts = audit.facts
    number = {name: f"{count:,}" for name, count in facts.items()}
    said = {
        "contradicted": "The release describes how it was made; the mechanism that was given is ignored.",
        "changed": "The description beside the file was written for another file (another sha256) and is ignored.",
        "negative": f"Negative counts, which unbiased noise makes, are read as zero: {number['negative']} of "
        f"{number['counts']}.",
        "fractional": f"Fractional counts show their label wherever they are above zero: {number['fractional']} of "
        f"{number['counts']}.",
        "nothing": "The release shows no positive count.",
        "unknown": f"Groups that the release shows and the original does not have: {number['unknown']} of "
        f"{number['shown']}.",
        "absent": f"Groups of the original that are not shown: {number['absent']}, with {number['hidden']} of its "
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
