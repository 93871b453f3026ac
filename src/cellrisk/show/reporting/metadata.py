"""What documents state beside their figures: who asks, the data, the noise, earlier releases, and the software."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import ROUND_CEILING, Context, Decimal
from importlib import metadata
from typing import TYPE_CHECKING, Any

from cellrisk.counts.table import list_assumptions
from cellrisk.decide.limits import RiskDefinition
from cellrisk.decide.policies import Policies
from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.noise.precision import find_precision
from cellrisk.risk.ceilings import Ceiling
from cellrisk.risk.explanation import explain
from cellrisk.show.wording.release import TOTAL, label, name_unit, say_step
from cellrisk.system.formatting import CURATOR_NOTE, claim, join_names, make_sentence, number_of
from cellrisk.system.version import __version__

if TYPE_CHECKING:
    from cellrisk.counts.cells import Domain
    from cellrisk.counts.table import FrequencyTable
    from cellrisk.repeat.accounting.composition import Composition
    from cellrisk.repeat.accounting.loss import Loss
    from cellrisk.repeat.ledger import Ledger

CHUNK = 1 << 20
LIBRARIES = ("numpy", "scipy", "duckdb")
FORMULAS = {
    "laplace": "Laplace noise of scale b = L1 / epsilon",
    "geometric": "two-sided geometric noise on whole numbers, P(j) proportional to exp(-|j| epsilon / L1)",
    "gaussian": "Gaussian noise, sigma = L2 sqrt(2 ln(1.25 / delta)) / epsilon, for epsilon below 1",
    "gaussian-pdp": "Gaussian noise, sigma = L2 (sqrt(z^2 + 2 epsilon) - z) / (2 epsilon), z the delta/2 quantile of "
    "the standard normal distribution (probabilistic differential privacy)",
    "gaussian-analytic": "Gaussian noise of the smallest sigma that gives the guarantee (Balle and Wang 2018)",
    "discrete-gaussian": "discrete Gaussian noise on whole numbers, sigma = L2 / sqrt(2 rho), with the largest rho "
    "that gives the guarantee (Canonne, Kamath and Steinke 2020)",
}
RELEASABLE = ("geometric", "discrete-gaussian")


def collect_metadata(
    given: Mapping[str, Any], policies: Policies, inputs: Mapping[str, Any] | None, ledger: Ledger | None, public: bool
) -> dict[str, Any]:
    """Return what is printed as it was given, the policies, and the versions of what computed the figures."""
    versions = [["cellrisk", __version__], *([name, metadata.version(name)] for name in LIBRARIES)]
    return {
        **given,
        "preparation": list(given["preparation"]),
        "public": public,
        "several_records": False,
        "policies": [{"name": each.describe(), "origin": each.origin} for each in policies.obeyed],
        "earlier": None,
        "budget": [],
        "digests": [] if public else _list_digests(inputs or {}, policies, ledger),
        "versions": [*versions, ["Python", f"{sys.version_info.major}.{sys.version_info.minor}"]],
        "curator_note": CURATOR_NOTE,
    }


def _list_digests(inputs: Mapping[str, Any], policies: Policies, ledger: Ledger | None) -> list[tuple[str, str]]:
    """The SHA-256 of each file, by what it is, and of the policies' files; of a ledger, that of its last entry."""
    digests = []
    for name, path in inputs.items():
        digest = hashlib.sha256()
        try:
            with open(path, "rb") as stream:
                while part := stream.read(CHUNK):
                    digest.update(part)
        except OSError as error:
            got = os.fspath(path)
            raise InvalidInput(f"{name} cannot be read: {error.strerror}", got=got, code="unreadable") from None
        digests.append((name, digest.hexdigest()))
    files = [each.file for each in policies.obeyed if each.file is not None]
    digests += [(f"the policy in {file.name}", file.digest) for file in files]
    return digests if ledger is None else [*digests, ("the ledger's last entry", ledger.head.digest)]


def describe_budget(ledger: Ledger, cohort: str, loss: Loss | str) -> dict[str, Any]:
    """Return what was published before about a cohort, and what is spent before and after one more release.

    ``loss``: what the release costs, or why that is not known.
    """
    from cellrisk.repeat.accounting.composition import compose

    state = ledger.state()
    known = bool(state.declared)  # a ledger without any is about to get its first; another name is refused
    losses = state.losses(cohort) if known else ()
    limit = state.limits.get(cohort)
    many = number_of(len(losses), "release") if losses else "Nothing"
    before = _describe_spent(ledger.spent(cohort)) if losses else "nothing"
    after, fits = f"not known ({loss})", "No: a ledger records only what can be released."
    if not isinstance(loss, str):
        after, fits = _describe_spent(compose([*losses, loss])), "Yes, within every limit of the ledger."
        try:
            ledger.check(loss, cohort, new_cohort=not known)
        except CellriskError as refusal:
            fits = f"No: {refusal}."
    allowed = "no limit is set" if limit is None else limit.describe()
    spent = f"Spent before: {before}. Spent after this release: {after}. Limit: {allowed}."
    earlier = f"{many} about the same people, by the ledger (cohort {cohort})."
    return {"earlier": earlier, "budget": [("Budget", spent), ("Does it fit?", fits)]}


def _describe_spent(spent: Composition) -> str:
    return f"epsilon {claim(spent.epsilon)}{f', delta {claim(spent.delta)}' if spent.delta else ''}"


def name_table(table: FrequencyTable) -> str:
    """Return what a table is of: trade by town and age."""
    return f"{join_names(table.sensitive)} by {join_names(table.quasi_identifiers)}"


def read_domains(table: FrequencyTable) -> tuple[Domain, ...]:
    """The domains of the quasi-identifiers; none if the table has no source to read them from."""
    return () if table.read_cells is None else table.cells(table.sensitive[0]).domains


def list_observed(table: FrequencyTable) -> list[str]:
    """The columns whose values were read from the data and not declared, as far as is known."""
    columns: tuple[Any, ...] = (*read_domains(table), *table.attributes)
    return [column.name for column in columns if not column.declared]


def describe_table_for_public(table: FrequencyTable) -> dict[str, Any]:
    """Return what the public may know of a table: its columns, and the rules by which its records were counted."""
    return {
        "name": name_table(table),
        "sensitive": list(table.sensitive),
        "quasi_identifiers": list(table.quasi_identifiers),
        "missing": table.missing,
        "outside": table.outside,
        "observed": list_observed(table),
    }


def describe_table(table: FrequencyTable) -> dict[str, Any]:
    """Return what the board sees of a table: also its numbers of records and cells, and its domain."""
    origin = {True: "declared", False: "observed in the data"}
    columns: list[tuple[str, str, int | None, str]] = [
        (each.name, "quasi-identifier", len(each), origin[each.declared]) for each in read_domains(table)
    ] or [(name, "quasi-identifier", None, "not known") for name in table.quasi_identifiers]
    columns += [(each.name, "sensitive", each.n_levels, origin[each.declared]) for each in table.attributes]
    return {
        **describe_table_for_public(table),
        **pick(table, "missing_records dropped_records outside_records"),
        "records": table.n_records,
        "unit": table.describe_unit(),
        "cells": table.n_cells,
        "domain": columns,
        "observed_identifiers": [each.name for each in read_domains(table) if not each.declared],
        "assumptions": list(list_assumptions(table)),
        "unique_cells": table.attributes[0].profiles.n_unique,
        "sizes": table.summary().cell_sizes,
        "largest_count": max(int(block.counts.max()) for each in table.attributes for block in each.profiles.blocks),
        "homogeneous": [
            {"sensitive": each.name, "cells": each.profiles.n_homogeneous, "people": each.profiles.n_exposed}
            for each in table.attributes
        ],
    }


def explain_cells(table: FrequencyTable, risk: RiskDefinition, top: int, **method: Any) -> list[dict[str, Any]]:
    """Return what `explain` finds of each sensitive attribute; nothing if the table has no source of its cells."""
    known = table.read_cells is not None and table.unit.contributions == 1
    names = table.sensitive if known else ()
    words: dict[str, Any] = {"form": risk.form, "weights": risk.weights, "top": top, **method}
    found = [explain(table, sensitive=name, **words) for name in names]
    parts = "sensitive headline riskiest by_level without coarser"
    return [{**pick(each, parts), "baseline": each.now.risk} for each in found]


def make_picture(figure: Any, label: str) -> dict[str, str]:
    """A figure of matplotlib as SVG, and what it shows in words, for readers who do not see it."""
    from cellrisk.show.pictures import to_svg

    return {"svg": to_svg(figure), "label": " ".join(label.split())}


def pick(thing: object, names: str) -> dict[str, Any]:
    """Some attributes of a thing, by their names between spaces."""
    return {name: getattr(thing, name) for name in names.split()}


def describe_threshold(threshold: float) -> str:
    """Return what becomes of a noisy count.

    >>> describe_threshold(10.5)
    'Noisy counts are rounded to whole numbers; those up to 10 are published as zero.'
    """
    below = "those below zero" if threshold == 0.5 else f"those up to {threshold - 0.5:g}"
    return f"Noisy counts are rounded to whole numbers; {below} are published as zero."


def describe_scale(mechanism: Mechanism) -> str:
    """Return how large the noise is, in counts."""
    return f"{'b' if mechanism.name in ('laplace', 'geometric') else 'sigma'} = {mechanism.scale:.6g}"


def describe_unit(mechanism: Mechanism) -> dict[str, str]:
    """Return whose presence is hidden, and how neighbouring tables differ."""
    unit = make_sentence(name_unit(mechanism.unit).removesuffix("."))
    return {"privacy_unit": unit, "neighbours": make_sentence(say_step(mechanism))}


def _name_library(mechanisms: Iterable[Mechanism]) -> str:
    """Return which program adds the noise of these mechanisms."""
    if not all(mechanism.name in RELEASABLE for mechanism in mechanisms):
        return "added by another program than cellrisk release"
    with suppress(metadata.PackageNotFoundError):
        return f"cellrisk {__version__}, OpenDP {metadata.version('opendp')}"
    return f"cellrisk {__version__}, OpenDP (not installed here)"


def describe_label(
    metadata: Mapping[str, Any],
    mechanisms: Sequence[Mechanism],
    guarantee: Any,
    ceiling: Ceiling | None,
    not_covered: str,
) -> dict[str, str]:
    """The label of a release of one table or several: its guarantee is that of all; the noise is that of each table."""
    total = " ".join(text for name, text in metadata["budget"] if name == "Budget") or TOTAL
    total = "not stated: this statement is on one release" if metadata["public"] else total
    library = _name_library(mechanisms)
    found = label(mechanisms[0], guarantee, ceiling, [not_covered], library, total=total)
    if len(set(mechanisms)) > 1:
        each = "of its own for each table: see the mechanisms, and the usefulness of what is published"
        found |= {"mechanism": f"noise {each}; {library}", "accuracy": each, "bias": each}
    return found


def describe_guarantee(loss: Any, mechanism: Mechanism) -> dict[str, Any]:
    """Return what an epsilon and a delta promise to a person: P(S) <= e^epsilon P'(S) + delta, both ways."""
    factor = Context(prec=3, rounding=ROUND_CEILING).create_decimal(Decimal(loss.epsilon).exp())
    step = "were left out" if mechanism.neighbours == "add-remove" else "held other values"
    return {
        **pick(loss, "epsilon delta"),
        "step": f"{'all records of one person' if mechanism.unit.kind == 'person' else 'one record'} {step}",
        "factor": f"{factor:,f}" if factor < 10**9 else f"{factor:e}",
    }


def describe_use(mechanism: Mechanism) -> dict[str, Any]:
    """Return how far counts, and sums of 25 counts, are from the true ones; the noise alone decides that."""
    precision, described = find_precision(mechanism), {}
    for name, mean in pick(precision, "at_zero at_hidden").items():
        described[name] = "under 0.001" if mean < 0.001 else f"{mean:.2g}" if mean < 9.95 else f"{mean:,.0f}"
    off_by = 2.0 * 5.0 * precision.sd  # two standard deviations of such a sum
    return {**pick(precision, "sd within hidden"), **described, "off_by": off_by}
