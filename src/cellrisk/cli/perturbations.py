"""Perturbations on the command line: what assess says of one, and why some commands refuse one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cellrisk.cli.answers import answer, stop_above_limit
from cellrisk.cli.groups import AttackerOptions, MechanismOptions, RiskOptions, TableOptions
from cellrisk.errors import InvalidInput
from cellrisk.system.text import as_given

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellrisk.decide.limits import Limit
    from cellrisk.decide.policies import Policies
    from cellrisk.noise.mechanisms import Mechanism
    from cellrisk.noise.perturbations import Perturbation


def explain_refusal(error: Any) -> str | None:
    """Why a command takes no --perturbation, where that is what was asked of it."""
    if getattr(error, "option_name", None) != "--perturbation" or getattr(error, "ctx", None) is None:
        return None
    from cellrisk.noise.methods import WITHOUT_PERTURBATION

    _, *names = error.ctx.command_path.split()
    return "; ".join(WITHOUT_PERTURBATION[names[0]]) if names and names[0] in WITHOUT_PERTURBATION else None


def read_perturbation_option(given: str) -> Perturbation:
    """The perturbation that --perturbation names, read before the table is."""
    from cellrisk.noise.perturbations import read_perturbation

    return read_perturbation(given)


def check_no_noise(mechanism: MechanismOptions, others: dict[str, bool], *, compared: bool = False) -> None:
    """Refuses options that say something of noise beside a perturbation.

    Where a mechanism is compared with, its name and its delta may be given.
    """
    usual = MechanismOptions(mechanism.mechanism, delta=mechanism.delta) if compared else MechanismOptions()
    named = {f"--{name}": getattr(mechanism, name) != getattr(usual, name) for name in vars(usual)} | others
    given = [name for name, is_given in named.items() if is_given]
    if given:
        raise InvalidInput(
            "a perturbation has no epsilon, neighbours or noise, and is assessed by the homogeneity attack alone",
            got=", ".join(given),
            fix=f"leave {', '.join(given)} out",
        )


def assess_perturbation_command(
    given: str,
    table: TableOptions,
    mechanism: MechanismOptions,
    risk: RiskOptions,
    attacker: AttackerOptions,
    limits: Sequence[Limit],
    max_risk: float | None,
    plot: str | None,
    as_json: bool,
    policies: Policies,
) -> None:
    """What a perturbation gives away, and the epsilon at equal risk; limits and policies are judged as for noise."""
    from cellrisk.risk.perturbed import assess_perturbation

    made = read_perturbation_option(given)
    many = {name: value for name, value in risk.many().items() if name in ("measures", "forms", "weights")}
    frequencies = table.tabulate()
    found = assess_perturbation(
        frequencies,
        made,
        compare=mechanism.mechanism,
        delta=mechanism.delta,
        priors=risk.priors,
        **many,
        **attacker.arguments(),
    )
    broken = []
    for limit in limits:
        breach = limit.breach(frequencies.attributes, made)
        broken += [] if breach is None else [f"asked for was {breach}"]
    if max_risk is not None:
        worst, what = found.largest_risk(risk.narrowed)
        if worst > max_risk:
            broken.append(f"risk {worst:.6g} ({what}) is above the limit {as_given(max_risk)}")
    broken += policies.breaches(frequencies, made)
    if plot is not None:
        found.plot(plot)
    answer(found, as_json, policies=policies)
    if broken:
        stop_above_limit("; ".join(broken))


def is_family(given: str) -> bool:
    """Whether a rule was given without its number."""
    from cellrisk.risk.perturbed.families import Family

    return Family.of(given) is not None


def compare_family(
    given: str,
    table: TableOptions,
    mechanism: Mechanism,
    attacker: AttackerOptions,
    others: dict[str, bool],
    as_json: bool,
    policies: Policies,
) -> None:
    """The mildest perturbation of a family that gives away no more than this noise."""
    from cellrisk.risk.perturbed.families import find_equal_perturbation

    names = [name for name, is_given in others.items() if is_given]
    if names:
        raise InvalidInput(
            f"{given} without its number asks for the number at equal risk, and for nothing else",
            got=", ".join(names),
            fix=f"leave {', '.join(names)} out, or give the number",
        )
    found = find_equal_perturbation(table.tabulate(), given, mechanism, **attacker.single())
    answer(found, as_json, policies=policies)
