"""What the attacks reveal at several settings, in a few numbers each: for tables and pictures along epsilon."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.attackers.figures import AttackTable
from cellrisk.risk.ceilings import total_variation

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute
    from cellrisk.risk.figures import Attacker


@dataclass(frozen=True)
class SettingFigures:
    """What the attacks on one sensitive attribute reveal at one setting, in expected people."""

    mechanism: Mechanism | None
    """None if the table is published without noise."""
    people: int
    own: float
    """People revealed because of their own record, by the attack that reveals most of them."""
    most: float | None
    """The largest probability that one person's own record adds, of all attacks; None without noise."""
    advantage: float
    """What one person's own record adds to any attack at most, as a probability."""
    certainty: float
    """How sure the informed attacker is."""
    inferred: float | None
    """People whose category the informed attacker infers; None without a prior."""
    without: float | None
    """Those whom the informed attacker infers with their own record left out."""
    own_record: str = AttackTable.own_record
    """What is left out of a person, in words."""

    def to_dict(self) -> dict[str, Any]:
        """Return an entry of ``settings`` in JSON."""
        numbers = {name: value for name, value in vars(self).items() if name not in ("mechanism", "own_record")}
        return {"epsilon": None if self.mechanism is None else self.mechanism.epsilon, **numbers}


def find_setting_figures(
    attribute: Attribute, attacker: Attacker, mechanisms: Iterable[Mechanism]
) -> tuple[SettingFigures, ...]:
    """Return the figures at each setting and, last, without noise; none if the groups' categories are not kept."""
    rows: list[SettingFigures] = []
    table: AttackTable | None = None
    for mechanism in mechanisms:
        table = next(reversed(attacker.tables(attribute, mechanism.channel)), None)
        if table is None:
            return ()
        figures = [table.figures(name) for name in table.names]
        own, most = max(float(each.own.sum()) for each in figures), max(each.most for each in figures)
        informed = figures[-1] if table.prior is not None else None
        rows.append(
            SettingFigures(
                mechanism,
                int(table.people.sum()),
                own,
                most,
                total_variation(mechanism),
                table.certainty,
                None if informed is None else float(informed.revealed.sum()),
                None if informed is None else float(informed.without.sum()),
                table.own_record,
            )
        )
    if table is None:
        return ()
    bare = {name: table.figures(name).no_noise for name in table.names}
    own = max(float(gain.sum()) for _, gain in bare.values())
    revealed, gain = bare["informed"] if table.prior is not None else (None, None)
    inferred = None if revealed is None else float(revealed.sum())
    without = None if inferred is None or gain is None else inferred - float(gain.sum())
    people = int(table.people.sum())
    return (
        *rows,
        SettingFigures(None, people, own, None, 1.0, table.certainty, inferred, without, own_record=table.own_record),
    )
