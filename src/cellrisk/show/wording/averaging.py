"""The words of `Averaging`: what an attacker gains who averages several releases."""

from __future__ import annotations

from cellrisk.repeat.averaging import Averaged, Averaging
from cellrisk.repeat.averaging.mean_noise import WHOLE, MeanNoise
from cellrisk.risk.measures import MEASURES
from cellrisk.system.formatting import CURATOR_NOTE, aligned, claim, number_of, of_people, percent, whole_people

ASSUMED = (
    "The rule takes one release by the same mechanism at the loss of all releases together; averaging is computed from "
    "the mean of the noises itself.",
    "The attacker is assumed to see the counts before they are rounded and before those below the threshold are set to "
    "zero; releases with thresholds show less.",
)


def headline(found: Averaging) -> str:
    """What a curator can repeat: for each sensitive attribute, the figures to decide by and its leading risk."""
    names = dict.fromkeys(row.sensitive for row in found.rows)
    caused = [_say_caused(found, row) for row in found.caused]
    return "\n".join([*caused, *(_say_risk(found, _lead(found, name)) for name in names)])


def statements(found: Averaging) -> list[str]:
    """What is assumed."""
    most, why_not = found.find_ceiling()
    ceiling = (
        f"The ceiling of all releases together is not known: {why_not}."
        if most is None
        else "The ceiling is that of all releases together, whatever is made of them: exact but for rounding up."
    )
    said = [*ASSUMED, ceiling]
    if found.noise.kind in WHOLE and found.releases % 2 == 0:
        said.append("A mean that meets the threshold exactly is not below it, so that count is shown.")
    if found.mechanism.pure and found.rule.delta:
        said.append(f"{found.mechanism.name} takes no delta: the rule is evaluated at its epsilon alone.")
    return said


def paragraphs(found: Averaging) -> list[str]:
    """What is printed below the headline."""
    header = ["measure", "form", "weights", "one release", "averaging", f"rule, {found.rule.method}", "larger"]
    parts = []
    for name in dict.fromkeys(row.sensitive for row in found.rows):
        body = []
        for row in (row for row in found.rows if row.sensitive == name):
            line = [row.measure, row.form or "-", row.weights or "-", f"{row.one:.4f}", f"{row.averaging:.4f}"]
            body.append([*line, "-" if row.rule is None else f"{row.rule:.4f}", row.larger or "-"])
        parts.append("\n".join([name, aligned(header, body, left=3), *found.fitted[name].describe()]))
    return [*parts, "\n".join(found.statements), CURATOR_NOTE]


def _say_caused(found: Averaging, row: Averaged) -> str:
    """The figures to decide by, of one attribute."""
    people = found.table.n_records
    said = (
        f"{row.sensitive}: an attacker who averages {number_of(found.releases, 'release')} would reveal the value of "
        f"{of_people(row.averaging * people, people)} only because of their own record; with one release, "
        f"{whole_people(row.one * people)} ({percent(row.one)})."
    )
    most, _ = found.find_ceiling()
    return said if most is None else f"{said} {most.of_two}"


def _lead(found: Averaging, name: str) -> Averaged:
    """The row that stands for an attribute: tight and by records if it was asked for."""
    order = {"tight": 0, "exact": 1, "published": 2}
    rows = [row for row in found.rows if row.sensitive == name]
    measures = list(MEASURES)
    return min(rows, key=lambda row: (measures.index(row.measure), order[str(row.form)], row.weights == "uniform"))


def _say_risk(found: Averaging, row: Averaged) -> str:
    weights = {"uniform": ", each cell alike", "records": ", by records", None: ""}[row.weights]
    return (
        f"{row.sensitive}: the risk from averaging {number_of(found.releases, 'release')} at "
        f"{found.mechanism.guarantee} is {percent(row.averaging)} ({row.measure.replace('_', ' ')}, {row.form}"
        f"{weights}); from one release alone it is {percent(row.one)}. {_compare(found, row)}"
    )


def _compare(found: Averaging, row: Averaged) -> str:
    """Whether the rule is larger, and the noise of both."""
    rule, risk, larger = found.rule, row.rule, row.larger
    named = f"the cumulative loss by {rule.method} composition"
    if rule.mechanism is None or risk is None:
        return f"The rule of {named} has no answer: {rule.why}."
    loss = f"epsilon {claim(rule.epsilon or 0.0)}" + (f" and delta {claim(rule.delta)}" if rule.delta else "")
    said = f"The rule of {named}, {loss}, gives {percent(risk)}"
    theirs, ours = MeanNoise.of(rule.mechanism.noise, 1).deviation, found.noise.deviation
    if larger == "equal":
        return f"{said}, which is the same: noise of standard deviation {theirs:.4g} against {ours:.4g}."
    word = "larger" if larger == "rule" else "smaller"
    return f"{said}, which is {word}; it assumes noise of standard deviation {theirs:.4g}, averaging leaves {ours:.4g}."
