"""The words of the table of attackers: which attack reveals whom, and which setting reveals how many."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cellrisk.errors import visible
from cellrisk.noise.channel import AdditiveChannel
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.noise.perturbations import Perturbation
from cellrisk.noise.precision import find_change, find_precision
from cellrisk.risk.attackers.attacker import SettingFigures
from cellrisk.risk.attackers.figures import AttackTable
from cellrisk.system.formatting import CURATOR_NOTE, aligned, claim, number_of, whole_people

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

ATTACK_NAMES = {
    "homogeneity": "Homogeneity attack (DR-HA)",
    "plurality": "Largest count",
    "best-guess": "Best guess",
    "informed": "Informed attacker, {sure:g}% sure",
}
NOISE_NAMES = {
    "laplace": "Laplace noise",
    "gaussian": "Gaussian noise",
    "gaussian-pdp": "Gaussian noise (probabilistic)",
    "gaussian-analytic": "Gaussian noise (analytic)",
    "geometric": "Geometric noise",
    "discrete-gaussian": "Discrete Gaussian noise",
}
ROUNDING = 1e-9
"""Smaller differences, in people or as a probability, are rounding."""
LESS_SURE = 0.8
"""The certainty at which the people who are learnt are also counted."""
ICONS = 100
"""People in a picture of people."""
WIDTH = 115
"""Columns of a first screen."""


def share(number: float) -> str:
    """Return a share in percent with one decimal; a small one is "under 0.1%".

    >>> share(0.30737), share(0.0), share(1.0), share(0.0002), share(-0.0002), share(0.99999)
    ('30.7%', '0%', '100%', 'under 0.1%', 'under 0.1%', 'over 99.9%')
    """
    if number in (0.0, 1.0):
        return f"{100 * number:.0f}%"
    if abs(number) < 0.0005:
        return "under 0.1%"
    return "over 99.9%" if 0.9995 <= number < 1.0 else f"{100 * number:.1f}%"


def whole_share(number: float) -> str:
    """Return a share in whole percent; one that would be 0 or 100 keeps a decimal.

    >>> whole_share(0.527), whole_share(0.004), whole_share(0.999)
    ('53%', '0.4%', '99.9%')
    """
    return f"{100 * number:.0f}%" if 0.005 <= number < 0.995 else share(number)


def share_at_most(number: float) -> str:
    """Return an upper bound in percent with one decimal, rounded up.

    >>> share_at_most(0.4621172), share_at_most(1.0)
    ('46.3%', '100%')
    """
    return f"{math.ceil(1000 * number - 1e-9) / 10:g}%"


def own_people(number: float, people: int) -> str:
    """Return people revealed because of their own record, without what is left of 0 by rounding.

    >>> own_people(1904.4, 27504), own_people(0.7, 100), own_people(1e-13, 100)
    ('1,904', 'under 1', '0')
    """
    number = _without_rounding(number, people)
    return "under 1" if 0 < number < 1 - ROUNDING else whole_people(number)


def own_share(number: float, people: int) -> str:
    """Return people revealed because of their own record as a share of all."""
    return share(_without_rounding(number, people) / people)


def own_of(number: float, people: int) -> str:
    """Return people revealed because of their own record, of all, with their share.

    >>> own_of(1904.4, 27504), own_of(0.2, 10), own_of(0.4, 1)
    ('1,904 of 27,504 people (6.9%)', 'fewer than 1 of 10 people (2.0%)', 'about 0.4 of 1 person (40.0%)')
    """
    shown = own_people(number, people).replace("under", "fewer than")
    if people == 1 and shown.startswith("fewer"):
        shown = f"about {number:.1g}"
    return f"{shown} of {number_of(people, 'person')} ({own_share(number, people)})"


def say_note(table: FrequencyTable) -> str:
    """Return that the figures are internal, and the unit of privacy, in lines that fit a screen."""
    return textwrap.fill(f"{CURATOR_NOTE} {table.describe_unit()}", WIDTH)


def name_table(table: FrequencyTable, sensitive: str) -> str:
    """Return a table in a line: its columns, people and groups."""
    names = ", ".join(table.quasi_identifiers)
    if len(names) > 60:
        names = number_of(len(table.quasi_identifiers), "quasi-identifier")
    return f"'{sensitive}' by {names}: {say_size(table, sensitive)}"


def say_size(table: FrequencyTable, sensitive: str) -> str:
    """Return the people of a table, their records if they may have several, and its groups."""
    kinds, records = table.attribute(sensitive).people, number_of(table.n_records, "record")
    people = f"{number_of(kinds.n_people, 'person')} with {records}" if kinds else records
    people = people if table.unit.contributions > 1 else number_of(table.n_records, "person")
    return f"{people} in {number_of(table.n_cells, 'group')}"


def name_setting(mechanism: Mechanism) -> str:
    """Return noise and guarantee in words: 'Geometric noise, epsilon 1'."""
    delta = "" if mechanism.pure else f", delta {claim(mechanism.delta)}"
    return f"{NOISE_NAMES[mechanism.name]}, epsilon {claim(mechanism.epsilon)}{delta}"


def name_attack(row: Mapping[str, Any]) -> str:
    """Return an attack on releases in hand in words, with the categories that it names as one value."""
    name = ATTACK_NAMES[row["attack"]].format(sure=100 * row.get("certainty", 0.0))
    return f"{name}: {' or '.join(row['union'])}" if "union" in row else name


def accuracy(method: Mechanism | Perturbation) -> str:
    """Return how far a published count is from the true one, in one sentence.

    >>> import cellrisk as cr
    >>> accuracy(cr.Geometric(1.0))
    'Geometric noise, epsilon 1: a published count is within 3 of the true one in 97 of 100 cases.'
    """
    if not isinstance(method, Mechanism):
        within = f"a published count is within {find_change(method):,} of the true one"
        return f"{method.name}: {within} in at least 95 of 100 cases."
    precision, first = find_precision(method), name_setting(method)
    cases = math.floor(100 * precision.share_within + 1e-9)
    if method.threshold < 1:
        return f"{first}: a published count is within {precision.within:,} of the true one in {cases} of 100 cases."
    least = math.ceil(method.threshold)
    moved = f"noise moves a count by at most {precision.within:,} in {cases} of 100 cases"
    return f"{first}: {moved}; below {least:,} it becomes 0."


def shown_attacks(table: AttackTable) -> list[str]:
    """Return the attacks of the first screen: best guess only if it reveals most because of the own record."""
    own = {name: table.figures(name).own for name in table.names}
    return [name for name in table.names if name != "best-guess" or own[name] == max(own.values())]


def attack_rows(table: AttackTable, names: Sequence[str], advantage: float | None) -> list[list[str]]:
    """Return the rows of the table: blind, as published, without noise; then because of the own record."""
    people = table.n_people
    rows = []
    for name in names:
        figures = table.figures(name)
        own, bare = figures.own, figures.no_noise[1]
        own = 0.0 if -figures.own_error <= own < 0.0 else own
        named = (figures.baseline, figures.revealed, figures.no_noise[0])
        rows.append(
            [
                ATTACK_NAMES[name].format(sure=100 * table.certainty),
                *(share(part / people) for part in named),
                f"{own_people(own, people)}  {own_share(own, people):>6}",
                share(bare / people),
                share(_without_rounding(figures.most, 0)),
            ]
        )
    if advantage is None:
        return rows
    bound = share_at_most(advantage)
    return [*rows, ["Any attack, at most", "", "", "", bound, "100%", bound]]


def count_icons(table: AttackTable) -> tuple[str, int, int, str]:
    """Return, of 100 people under the attack that reveals most because of their own record: the attack in words; the
    number it names correctly from other people's records; the number because of their own record; that in words.
    """
    attacks = {name: table.figures(name) for name in table.names}
    name = max(attacks, key=lambda attack: attacks[attack].own)
    people, figures = table.n_people, attacks[name]
    own_total = _without_rounding(figures.own, people)
    own = max(0, round(ICONS * own_total / people))
    others = max(0, min(ICONS - own, round(ICONS * figures.without / people)))
    words = ATTACK_NAMES[name].format(sure=100 * table.certainty).partition(" (")[0]
    return f"{words[:1].lower()}{words[1:]}", others, own, "fewer than 1" if own == 0 < own_total else f"{own}"


def say_icons(table: AttackTable, sensitive: str, setting: str) -> str:
    """Return in words what the picture of 100 people shows."""
    attack, others, _, own = count_icons(table)
    return (
        f"Two pictures of {ICONS} people, at {setting}; {attack}. With a person's {table.own_record} left out, the "
        f"attack names '{visible(sensitive)}' correctly for {others}. With the {table.own_record.removeprefix('own ')} "
        f"in the table, it does so for {own} more."
    )


def attack_table(table: AttackTable, names: Sequence[str], advantage: float | None, setting: str) -> str:
    """Return the attacks as rows, aligned, under two lines of headings; "blind" if noise can drown the counts."""
    header = ["", "blind", setting, "no noise", f"  {setting}", "no noise", "most for one person"]
    rows = attack_rows(table, names, advantage)
    if not isinstance(table.channel, AdditiveChannel):
        header, *rows = ([*row[:1], *row[2:]] for row in (header, *rows))
    lines = aligned(header, rows).splitlines()
    end = lines[0].index("no noise") + len("no noise")
    own = f"because of their {table.own_record}, at least"
    return "\n".join(["value named correctly".rjust(end) + own.rjust(len(lines[0]) - end), *lines])


def setting_table(
    rows: Sequence[tuple[Sequence[str], SettingFigures]], header: Sequence[str] = ("epsilon",), columns: int = 4
) -> str:
    """Return settings as rows, aligned: the error of a count, and ``columns`` figures of what is revealed.

    The first cells of each row are given, with their headings, of one line or two. What any attack can do at most is
    the last figure: no guarantee covers an epsilon that was chosen from the data.
    """
    figures, body = rows[0][1], []
    sure = [] if figures.inferred is None else [f"inferred,\n{100 * figures.table.certainty:g}% sure"]
    sure += ["harmful\nlearnt"] if figures.table.harmful else []
    sure += ["joined values\nlearnt" for _ in figures.table.unions]
    own = [f"because of their\n{figures.table.own_record}, at least", "most for\none person"]
    revealed = [*own, *sure, "any attack,\nat most"][:columns]
    heads = [head.rpartition("\n") for head in (*header, "count\nwithin", *revealed)]
    for first, figures in rows:
        mechanism, people = figures.mechanism, figures.people
        cells = [
            "0" if mechanism is None else f"{find_precision(mechanism).within:,}",
            f"{own_people(figures.own, people)} {own_share(figures.own, people):>7}",
            "" if figures.most is None else share(_without_rounding(figures.most, 0)),
            *([] if figures.inferred is None else [share(figures.inferred / people)]),
            *(share(number / people) for number in figures.learnt),
            share_at_most(figures.advantage),
        ]
        body.append([*first, *cells][: len(heads)])
    return aligned([top for top, _, _ in heads], [[bottom for _, _, bottom in heads], *body])


def strongest(table: AttackTable, sensitive: str, setting: str) -> str:
    """Return in one sentence how many people are revealed because of their own record, by the strongest attack.

    ``setting`` begins the sentence: "At epsilon 1".
    """
    own = max(table.figures(name).own for name in table.names)
    return revealed_by_own_record(own, table.n_people, sensitive, setting, table.own_record)


def revealed_by_own_record(
    own: float, people: int, sensitive: str, setting: str, own_record: str = AttackTable.own_record
) -> str:
    """Return in one sentence how many people are revealed because of their own record.

    >>> revealed_by_own_record(1904.4, 27504, "income", "At epsilon 1")
    "At epsilon 1, the 'income' of at least 1,904 of 27,504 people (6.9%) is revealed because of their own record."
    """
    own = _without_rounding(own, people)
    if own == 0:
        return f"{setting}, nobody's '{sensitive}' is revealed because of their {own_record}."
    if own < 0:  # a perturbation can hide people behind each other
        fewer = f"the attacks reveal the '{sensitive}' of {number_of(-own, 'person')} fewer"
        return f"{setting}, {fewer} than if each person's {own_record} were left out."
    number = own_of(own, people) if own < 1 - ROUNDING else f"at least {own_of(own, people)}"
    return f"{setting}, the '{sensitive}' of {number} is revealed because of their {own_record}."


def fill(text: str) -> str:
    """Return sentences, each in lines of its own that fit a screen."""
    sentences = re.sub(r"(?<=[.?!]) (?=[A-Z0-9'])", "\n", text).split("\n")
    return "\n".join(textwrap.fill(sentence, WIDTH, break_on_hyphens=False) for sentence in sentences)


def people_above(table: AttackTable) -> str:
    """Return how many people gain notably, in one sentence."""
    number = table.people_above(0.1)
    who = f"{number_of(number, 'person')} are" if number > 1 else "1 person is" if number else "Nobody is"
    often = f"more than 10 points more often because of their {table.own_record}"
    return f"{who} named {often} (homogeneity, largest count)."


def learnt(table: AttackTable, sensitive: str, categories: Sequence[str]) -> str:
    """Return in one sentence what the informed attacker learns, the category that is learnt most first."""
    figures = table.figures("informed")
    total, own = figures.learnt or 0.0, figures.learnt_own or 0.0
    what = f"harmful '{sensitive}'" if table.harmful else f"'{sensitive}'"
    if total < 0.5:
        return f"The informed attacker learns nobody's {what} beyond the overall shares."
    people, start = number_of(total, "person"), f"The informed attacker learns the {what} of"
    if table.own_record != AttackTable.own_record:
        start = f"The informed attacker learns a value of {what} of"
    else:
        numbers = figures.by_category["learnt"].tolist(), table.people.tolist()
        shares = [(part / max(n, 1), name) for part, n, name in zip(*numbers, categories, strict=True)]
        largest = sorted((each for each in shares if each[0] >= 0.0005), reverse=True)[:2]
        named = ", ".join(f"{visible(name, '')} {whole_share(part)}" for part, name in largest)
        people += f" ({named})"
    number = 0.0
    if table.certainty > LESS_SURE:  # those who are 80% sure are named if they are more than twice as many
        number = replace(table, certainty=LESS_SURE).figures("informed").learnt or 0.0
    less_sure = f" (at {100 * LESS_SURE:g}%: {whole_people(number)})" if number > 2.0 * total else ""
    return f"{start} {people}, {whole_people(total - own)} from others' records alone{less_sure}."


def learnt_union(table: AttackTable, union: Sequence[int], categories: Sequence[str]) -> str:
    """Return in one sentence what the informed attacker learns of categories that count as one value."""
    figures, name = table.figures("informed", tuple(union)), " or ".join(visible(categories[k], "") for k in union)
    total, people = figures.learnt or 0.0, figures.people
    if total < 0.5:
        return f"Taken as one value, {name} is learnt of nobody beyond the overall shares."
    return f"Taken as one value, {name} is learnt of {whole_people(total)} of {number_of(people, 'person')}."


def _without_rounding(number: float, people: float) -> float:
    """Return 0 for what is left of 0 by rounding, in a sum over so many people."""
    return 0.0 if abs(number) < ROUNDING + 1e-15 * people else number
