"""The words of `TogetherAssessment` and `Split`: what several tables about the same people reveal, and cost."""

from __future__ import annotations

from collections.abc import Iterator

from cellrisk.repeat.together import TogetherAssessment
from cellrisk.repeat.together.after_consistency import Refinement
from cellrisk.repeat.together.linkage_attacks import MOST_SUBSETS
from cellrisk.repeat.together.splitting import Split
from cellrisk.show.wording.attackers import fill, own_of, own_people, own_share, share
from cellrisk.system.formatting import (
    CURATOR_NOTE,
    aligned,
    change,
    claim,
    make_sentence,
    number_of,
    percent,
    say_people,
)

TABLES_SHOWN, LONGEST_NAME = 3, 40
"""Tables on the first screen, and characters of their names."""
NEXT_SPLIT = "What error and shares mean: --all   Release: cellrisk together release ..."
MEANT_SPLIT = (
    "Error: the bound on the total variation distance of each table from the true one, weighted by use. Least caused: "
    "the best shares found whose error is at most {slack} above the least, or that of even shares. Right and caused "
    "are of elimination by all tables. By some tables: the most that some of them do."
)
SAYS = {
    "elimination": "the one value that is zero in none of the person's groups",
    "any": "a value that some table shows alone; there may be several",
}
INFORMED = (
    "The informed attacker applies Bayes' rule to all tables. Tempering 1 takes the tables as independent given a "
    "person's value, and is overconfident if they are not; a fitted one is that of an attacker who is helped by the "
    "true values. The figures are those of these tables, given the tempering."
)
RELATIONS = {
    "margin": "{} is a margin of {}.",
    "nested": "The people of {} and {} are nested: what their difference shows on common columns is left out.",
    "overlap": "The people of {} and {} overlap: what their differences show is left out.",
}


def headline(found: TogetherAssessment | Split) -> str:
    """Return what a member of a board can repeat."""
    if isinstance(found, Split):
        return " ".join(_say_shares(found))
    lead, several = found.rule(), len(found.tables) > 1
    tables = f"the {len(found.tables)} tables together reveal" if several else "the table reveals"
    return (
        f"By elimination, {tables} the '{found.sensitive}' of {own_of(lead.caused, found.records)} because of their "
        f"own record. It names {share(lead.right / found.records)} of the people correctly; with nothing but noise, "
        f"{share(lead.chance / found.records)}."
    )


def screen(found: TogetherAssessment | Split) -> list[str]:
    """Return what is printed first: what the set reveals, each table alone, and what the set costs."""
    if isinstance(found, Split):
        names = [table.name or f"table {table.number}" for table in found.tables]
        split = [
            [way.name, *(f"{part:.3g}" for part in way.parts), f"{way.error:.4g}"]
            + [say_people(people) for people in (way.right, way.caused, way.largest)]
            for way in found.ways
        ]
        head = [f"shares of epsilon {found.total:g}", *names, "error", "right", "caused", "by some tables"]
        return [fill(headline(found)), aligned(head, split), f"{NEXT_SPLIT}\n{CURATOR_NOTE}"]
    name = f"'{found.sensitive}': {number_of(found.records, 'person')} in {number_of(len(found.tables), 'table')}"
    people, ordered = found.records, sorted(found.tables, key=lambda table: -table.alone.caused)
    shown = len(ordered) if len(ordered) <= TABLES_SHOWN else TABLES_SHOWN - 1
    parts = [("all together", found.cost.epsilon, found.rule(), "")]
    for each in ordered[:shown]:
        title = f"{each.table.number}: {each.table.name or each.table.describe()}"
        without = "" if each.without is None else own_people(each.without.caused, people)
        parts.append((title[:LONGEST_NAME], each.table.mechanism.epsilon, each.alone, without))
    rows = [
        [
            *(title, claim(epsilon), own_people(alone.caused, people), own_share(alone.caused, people)),
            *(share(alone.right / people), share(alone.raw / people), without),
        ]
        for title, epsilon, alone, without in parts
    ]
    hidden = len(found.tables) - shown
    rest = [f"{hidden:,} more tables: --all"] if hidden > 0 else []
    header = ["", "epsilon", "because of own record", "", "named correctly", "no noise", "set without it"]
    ceiling = f"No worst case is stated: {found.ceiling_unknown}."
    if found.ceiling is not None:
        ceiling = fill(found.ceiling.headline).partition("\nWorst")[0]
    return [
        f"{name}\n{fill(headline(found))}",
        "\n".join([aligned(header, rows), *rest]),
        f"{found.cost.headline}\n{ceiling}",
        f"Shares of a total: cellrisk together split ...   Attacks, and what is assumed: --all\n{CURATOR_NOTE}",
    ]


def paragraphs(found: TogetherAssessment | Split) -> list[str]:
    """Return the rest: both attacks, which table adds most, least squares, the informed attacker, what is assumed."""
    if isinstance(found, Split):
        head = ["mean error of a count", "use", "groups", *(way.name for way in found.ways)]
        errors = [
            [f"{table.number}: {table.name or table.describe()}", f"{use:.3g}", f"{cells:,}"]
            + [f"{way.mean_errors[place]:.3g}" for way in found.ways]
            for place, (table, use, cells) in enumerate(zip(found.tables, found.use, found.cells, strict=True))
        ]
        return [aligned(head, errors), fill(MEANT_SPLIT.format(slack=percent(found.slack)))]
    refined = found.refinement
    blocks = [_rules_table(found) if len(found.tables) > 1 else "", _tables_table(found)]
    blocks += [fill(" ".join(_say_parts(found))), "\n".join(fill(each.headline) for each in found.differences)]
    if refined is not None:
        blocks.append(fill(refinement_headline(refined)))
        rows = [
            [row.what, *map(say_people, (row.right, row.plain.right, row.caused, row.plain.caused)), row.how]
            for row in refined.rows
        ]
        head = ["least squares", "right", "as published", "caused", "as published", "how (right and caused)"]
        blocks += [aligned(head, rows)] if rows else []
    blocks += [] if found.ceiling is None else [fill(found.ceiling.headline.partition(". ")[2])]
    blocks += ["\n".join(fill(each) for each in statements(found)), _say_certain(found)]
    return [block for block in blocks if block]


def _rules_table(found: TogetherAssessment) -> str:
    rows = [
        [
            *(rule.rule, say_people(rule.right), say_people(rule.named), _share(rule.precision), rule.deviation),
            *(say_people(rule.caused), say_people(rule.chance), f"{rule.raw:,}"),
        ]
        for rule in found.rules
    ]
    head = ["all tables together", "right", "named", "precision", "sd", "caused", "chance", "raw"]
    meant = "\n".join(f"{rule.rule}: {SAYS[rule.rule]}." for rule in found.rules)
    lead = found.rule()
    between = f"{lead.low:,} to {number_of(lead.high, 'person')}"
    return f"{aligned(head, rows)}\n\n{meant}\nElimination is right for {between} in 95% of releases (simulated)."


def _share(precision: float | None) -> str:
    return "-" if precision is None else percent(precision)


def _tables_table(found: TogetherAssessment) -> str:
    rows = []
    for each in found.tables:
        alone, rest = each.alone, each.without
        name = f"{each.table.number}: {each.table.name or each.table.describe()}"
        numbers = [say_people(alone.right), say_people(alone.named), alone.deviation, say_people(alone.caused)]
        without = ["-", "-"] if rest is None else [say_people(rest.right), say_people(rest.caused)]
        rows.append(
            [name, claim(each.table.mechanism.epsilon), f"{each.cells:,}", *numbers, f"{alone.raw:,}", *without]
        )
    head = ["each table alone", "epsilon", "groups", "right", "named", "sd", "caused", "raw"]
    return aligned([*head, "set without it: right", "caused"], rows)


def _say_parts(found: TogetherAssessment) -> Iterator[str]:
    """Which table adds most, and which tables do more than all; nothing for one table."""
    lead, most, largest = found.rule(), found.adds_most, found.largest
    if most is None:
        return
    if most.without is not None and most.without.caused < lead.caused:
        yield (
            f"{make_sentence(most.table.title, '')} adds most: without it, the people revealed because of their own "
            f"records would go {change(say_people(lead.caused), say_people(most.without.caused))}, and those revealed "
            f"at all {change(say_people(lead.right), say_people(most.without.right))}."
        )
    if len(largest) < len(found.tables):
        yield (
            f"{number_of(len(largest), 'table')} of them ({', '.join(map(str, largest))}) would reveal more people "
            f"because of their own records than all: {say_people(found.collections[largest].caused)}. The noise of the "
            "others hinders the attacker, who may ignore them."
        )
    if len(found.tables) > MOST_SUBSETS:
        yield f"Of more than {MOST_SUBSETS} tables, only all, all but one and each by itself were compared."


def refinement_headline(refined: Refinement) -> str:
    """What least squares leaves of the noise, and what the attacks then reveal."""
    shares = ", ".join(f"{100 * share:.1f}%" for share in refined.shares)
    reveals = f"What that reveals is not computed: {refined.why}."
    return (
        "Least squares over the margins that the tables have in common, if every combination of values is "
        f"published, leaves {shares} of the variance of their noise. "
        f"{'What attacks then reveal is simulated.' if refined.rows else reveals}"
    )


def _say_certain(found: TogetherAssessment) -> str:
    """The informed attacker."""
    if found.certain_unknown is not None:
        return f"The informed attacker is not computed: {found.certain_unknown}."
    if not found.certain:
        return ""
    rows = [
        [
            *(f"{each.certainty:g}", f"{each.tempering:.3g}{' (fitted)' if each.fitted else ''}"),
            *(say_people(each.right), say_people(each.named), _share(each.precision), each.how),
        ]
        for each in found.certain
    ]
    return f"{aligned(['certain to', 'tempering', 'right', 'named', 'precision', 'how'], rows)}\n\n{INFORMED}"


def statements(found: TogetherAssessment) -> Iterator[str]:
    """What the figures assume, and what they leave out."""
    yield (
        "Noise is independent in every count of every table. The attacker knows the groups of a person in all tables, "
        "and uses nothing else."
    )
    yield "Means are exact. The deviations of the rules (with their standard errors) and the intervals are simulated."
    if not found.declared:
        yield (
            f"The levels of {found.sensitive} are the {found.labels:,} observed ones, not declared: a level that "
            "exists but does not occur is not counted."
        )
    if found.missing == "drop":
        yield (
            "Records were left out of the tables for whose columns a value is missing; in no table at all are "
            f"{number_of(found.dropped, 'record')}."
        )
    elif found.dropped:
        yield f"{number_of(found.dropped, 'record')} are in no table."
    if found.outside:
        yield (
            f"{number_of(found.outside, 'record')} with a value that is not among the declared labels of its "
            f"column {'was' if found.outside == 1 else 'were'} left out of the tables that have the column."
        )
    for relation, first, second in found.relations:
        yield make_sentence(RELATIONS[relation].format(first.title, second.title), "")
    if found.common:
        yield (
            "Tables that share columns have margins in common, and least squares would make them more precise; these "
            "figures leave that out."
        )


def _say_shares(split: Split) -> Iterator[str]:
    """Yield what even shares of a total reveal, and the shares that reveal fewest."""
    even, least, fewest = split.ways
    yield (
        f"Of epsilon {split.total:g} in all, even shares reveal the '{split.sensitive}' of "
        f"{number_of(even.caused, 'person')} because of their own records."
    )
    if even.caused - fewest.caused <= 0.005 * even.caused or round(even.caused) == round(fewest.caused):
        yield "No shares were found that reveal noticeably fewer within the error allowed."
        return
    above = percent(fewest.error / least.error - 1.0)
    yield f"The shares that reveal fewest, in the last row, reveal {number_of(fewest.caused, 'person')}."
    yield f"Their error is {above} above the least."
