"""Every number and claim of the paper that can be computed: where it stands, what is printed, and how we compute it.

A function below a claim returns our number, which is compared at the print's number of digits, or a `Finding` on a
claim in words: it holds, it holds in part (on a condition that the paper does not state), or it does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import cellrisk as cr
from cellrisk.counts.profiles import Profiles
from reproduction.experiments import MECHANISMS, WAYS, WEIGHTINGS, Experiment, Line, Results, make_grid

AGREES, ON_CONDITION, DIFFERS = "agrees", "agrees on a condition", "does not agree"
NEAR = 0.05  # risks that differ by no more than this are called close or similar here
REACHED = 0.01  # a risk within this of its end has reached it
ROUNDING = 1e-9  # the rounding of a sum of thousands of terms stays far below this
CELL_SIZES = (2, 3, 5, 10, 50, 240)
GUESSES = ("plurality", "proportional")  # hard and soft thresholding
EXAMPLE = Profiles.from_cells([[2, 2, 0], [1, 2, 1], [0, 0, 4]], n_levels=3)
"""Table 1: people with cancer, heart disease and diabetes in its three groups of race and age."""
ATTACK, FORMULAS, RANGES = "2.2 Homogeneity attack", "4.1, Corollary 2", "4, Corollaries 2 and 4"
EXPERIMENTS, LIST, RESULTS = "5 Experiments", "5 Experiments, list", "5.2 Results"
SETTING, FOOTNOTE, CAPTION = "5.1 Experiment setting", "5.1 Experiment setting, footnote", "Figure 2, caption"
HOMOGENEOUS, SUBSET, UTILITY, DISCUSSION = "5.2, item 2", "5.2, item 3", "5.3 Utility", "6 Discussion, and supplement"
ITEM_2, BOTH_1, BOTH_4 = f"{RESULTS}, item 2", f"{LIST}, 2, and {RESULTS}, item 1", f"{LIST}, 2, and {RESULTS}, item 4"
IS_ONE, LOWER_ENDS = "Adult, Bankruptcy: the risk is 1", "Bankruptcy subset: the lower ends"
GEOMETRIC = "The geometric mechanism"
AT_LEAST = "1 - exp((0.5 - n) epsilon)/2 for cells of {} or more is at least"
RANGE = "Where all cells are homogeneous the {} risk lies between 2^-K and 1 ({{}})"
RATE = "Poisson rate of the cell sizes by maximum likelihood"
FROM_ONE = "It holds from epsilon 1 on; the text does not say so, and at smaller epsilons the factor falls to 1/2."
ONE_LABEL = "It holds only where A(n) = 1, that is where the prior allows homogeneous cells alone."
NO_EMPTY = "It holds only where sizes of 0 are ruled out; with a plain Poisson distribution empty cells take a share."
NOTABLE = "Notable means a quarter of the distance here."
ROWS = "The paper counts rows, a cell with one income each, and takes them for cells."
TRUNCATED = "Empty cells are never seen; with that in mind (zero-truncated) the rate is {:.2f}."


class Finding(NamedTuple):
    """What we find for a claim in words. A number instead of a truth value is compared with the print."""

    ours: str
    holds: bool | float
    in_part: bool | float = False
    why: str = ""


CLAIMS: list[tuple[str, str, str, str, Callable[..., float | Finding], dict[str, Any]]] = []
"""Place, claim, print, explanation, and the function that computes ours from the results and further arguments."""


def claim(place: str, text: str, paper: str, why: str = "", **given: Any) -> Callable[[Any], Any]:
    """Add a claim that the function below computes; of several claims above a function, the lowest comes first."""

    def add(compute: Any) -> Any:
        CLAIMS.append((place, text, paper, why, compute, given))
        return compute

    return add


def evaluate(results: Results) -> Iterator[dict[str, str]]:
    """Yield every claim that the results cover beside ours, with the verdict."""
    for place, text, paper, why, compute, given in CLAIMS:
        if not results.distances and (place == UTILITY or text.startswith(("Bankruptcy", "The curves of Adult and"))):
            continue
        found = compute(results, **given)
        if not isinstance(found, Finding):
            found = Finding(f"{found:.4g}" if "." in paper or "e" in paper else f"{found:,.0f}", found)
        holds, in_part = (each if isinstance(each, bool) else same(paper, each) for each in found[1:3])
        verdict = AGREES if holds else ON_CONDITION if in_part else DIFFERS
        why = found.why or why or ("" if holds else "Ours differs from the print.")
        text = text.format(results.homogeneous[-1].label)
        yield {"place": place, "claim": text, "paper": paper, "ours": found.ours, "verdict": verdict, "why": why}


def same(paper: str, ours: float) -> bool:
    """Return whether two numbers agree at the paper's number of digits.

    >>> same("0.69", 54 / 78), same("5,974", 5009), same("3.6e-05", 1 / 27504)
    (True, False, True)
    """
    mantissa, power, _ = paper.partition("e")
    decimals = len(mantissa.partition(".")[2])
    return paper == (f"{ours:.{decimals}e}" if power else f"{ours:,.{decimals}f}")


def span(values: Iterable[float], digits: int = 3) -> str:
    """Return the least and the greatest of some numbers.

    >>> span([0.5, 0.25, 0.4]), span([0.25, 0.2500001])
    ('0.250 to 0.500', '0.250')
    """
    ordered = sorted(values)
    low, high = (f"{value:.{digits}f}" for value in (ordered[0], ordered[-1]))
    return low if low == high else f"{low} to {high}"


def paper_lines(experiments: Sequence[Experiment], *mechanisms: str) -> list[Line]:
    """Return the paper's curves under these mechanisms: both measures, each delta, both weightings."""
    words = {"mechanism": mechanisms, "measure": ("local", "expected")}
    return [line for experiment in experiments for line in experiment.find(**words)]


def largest_gap(some: Sequence[Line], others: Sequence[Line]) -> float:
    """Return the largest difference between two lists of lines, pair by pair."""
    return max(float(np.abs(one.risk - other.risk).max()) for one, other in zip(some, others, strict=True))


def covered(line: Line, risk: float) -> float:
    """Return the share of the way from a line's lower end to its upper end."""
    return float((risk - line.limits.chance) / (line.limits.raw - line.limits.chance))


def rises(line: Line) -> bool:
    return bool((np.diff(line.risk) >= -ROUNDING).all())


def bends(line: Line) -> int:
    """Return how often the line changes from bending up to bending down, or back, along log(epsilon)."""
    turn = np.diff(np.diff(line.risk) / np.diff(np.log(line.epsilon)))
    signs = np.sign(turn[np.abs(turn) > 1e-4 * np.abs(turn).max()])
    return int((np.diff(signs) != 0).sum())


def shows_one(counts: tuple[int, ...], noise: Any) -> float:
    """Return the probability that exactly one of the counts is released above zero.

    sum_k s(m_k) prod_{j != k} q(m_j), with q the probability that a count is released as zero, and s = 1 - q.
    """
    q, s = noise.p_zero(np.array(counts)), noise.p_positive(np.array(counts))
    return float(sum(s[k] * np.delete(q, k).prod() for k in range(len(counts))))


claim(ATTACK, "Table 1: people whose medical condition is read off (records 9 to 12)", "4")(lambda _: EXAMPLE.n_exposed)
claim(ATTACK, "Table 1: records of the example", "12")(lambda _: EXAMPLE.n_records)
claim(ATTACK, "Table 1: groups that share their quasi-identifiers", "3")(lambda _: EXAMPLE.n_cells)


@claim("4.1, Theorem 1", "The closed form is above the local risk of a heterogeneous cell", "always")
def bound(_: Results) -> Finding:
    """Definition 6 and Theorem 1 write "<"; the closed form is the risk of (n - 1, 1, 0, ..., 0)."""
    noise = cr.Laplace(epsilon=0.001).noise
    published, exact = shows_one((6, 1), noise) * float(noise.p_zero(0)), shows_one((4, 2, 1), noise)
    noises = [cr.Laplace(epsilon=float(epsilon)).noise for epsilon in make_grid(51)]
    pairs = [(one, other) for one in range(1, 9) for other in range(1, one + 1)]
    gaps = [shows_one((sum(pair) - 1, 1), each) - shows_one(pair, each) for pair in pairs for each in noises]
    ours = f"{published:.4f} against {exact:.4f} for a cell with counts 4, 2, 1 (K = 3) at epsilon 0.001"
    why = "It is built from two counts, n - 1 and 1. With two labels it is a bound; with more it can be too small."
    return Finding(ours, published >= exact, min(gaps) >= -ROUNDING, why)


@claim("4.1, K = 2", "The term of heterogeneous cells decreases in epsilon for any cell of 2 or more", "always")
def second_term(_: Results) -> Finding:
    """e^(-eps/2) + e^((1.5-n) eps) - e^((1-n) eps), twice what a heterogeneous cell adds, falls with epsilon."""
    epsilon, n = make_grid(501), np.array(CELL_SIZES)[:, None]
    risen = np.diff(np.exp(-0.5 * epsilon) + np.exp((1.5 - n) * epsilon) - np.exp((1.0 - n) * epsilon)).max()
    rise = "never rises" if risen <= 0 else f"rises by up to {risen:.2g}"
    return Finding(f"it {rise} along {len(epsilon)} epsilons, for cells of {str(CELL_SIZES)[1:-1]}", bool(risen <= 0))


@claim(FORMULAS, AT_LEAST.format(2), "0.888", FROM_ONE, n=2)
@claim(FORMULAS, AT_LEAST.format(3), "0.959", FROM_ONE, n=3)
@claim(FORMULAS, AT_LEAST.format(4), "0.985", FROM_ONE, n=4)
def survival(_: Results, n: int) -> Finding:
    """1 - e^((0.5-n) eps)/2, the probability that a count of n is not released as zero."""
    low, one = (float(cr.Laplace(epsilon=epsilon).noise.p_positive(n)) for epsilon in (0.1, 1.0))
    return Finding(f"{one:.4f} at epsilon 1, {low:.4f} at epsilon 0.1", low, one)


@claim(FORMULAS, "Where all cells are homogeneous the risk is never below 2^-K, 25% for K = 2", "0.25")
def lower_bound(results: Results) -> Finding:
    lines = [line for experiment in results.homogeneous for line in experiment.find()]
    least, ends = min(float(line.risk.min()) for line in lines), [line.limits.chance for line in lines]
    holds = least >= 0.25 - ROUNDING and same("0.25", min(ends)) and same("0.25", max(ends))
    return Finding(f"{least:.4f} is the least on the curves; they tend to {span(ends, 4)}", holds)


@claim(FORMULAS, "Where all cells are homogeneous the risk grows with epsilon", "always")
def growth(results: Results) -> Finding:
    rising = [rises(line) for experiment in results.homogeneous for line in experiment.find()]
    return Finding(f"{sum(rising)} of {len(rising)} curves never fall", all(rising))


@claim(RANGES, RANGE.format("marginal shrinkage"), "0.25 to 1", ONE_LABEL, measure="marginal_shrinkage")
@claim(RANGES, RANGE.format("marginal"), "0.25 to 1", NO_EMPTY, measure="marginal")
@claim(RANGES, RANGE.format("shrinkage"), "0.25 to 1", ONE_LABEL, measure="shrinkage")
def range_of(results: Results, measure: Any) -> Finding:
    """The two ends of a measure on a table of homogeneous cells, with a prior that leaves A(n) or f below 1."""
    table = results.homogeneous[-1].table
    plain = cr.Priors(zero_truncation=False), "Poisson sizes that are not zero-truncated"
    priors, words = plain if measure == "marginal" else (cr.Priors(alpha=(1.0, 1.0)), "all alpha 1")
    ends = []
    for each in (priors, cr.Priors()):
        asked: dict[str, Any] = {"measures": measure, "forms": "published", "weights": "uniform", "priors": each}
        limits = cr.curve(table, "laplace", epsilon=1.0, **asked).lines[0].limits
        ends.append((limits.chance, limits.raw))
    within = [np.allclose(each, (0.25, 1.0), rtol=0, atol=5e-4) for each in ends]
    free, fitted = (f"{low:.3f} to {high:.3f}" for low, high in ends)
    return Finding(f"{free} with {words}; {fitted} with fitted priors", all(within), any(within))


@claim(SUBSET, "Bankruptcy subset: people in homogeneous cells, of 250", "142", of="subset", name="n_exposed")
@claim(EXPERIMENTS, "Bankruptcy: one over the number of records", "4e-03", of="bankruptcy", name="n_records", power=-1)
@claim(EXPERIMENTS, "Adult: one over the number of records", "3.6e-05", of="adult", name="n_records", power=-1)
@claim(SETTING, "Bankruptcy subset: heterogeneous cells", "24", of="subset", name="n_heterogeneous")
@claim(SETTING, "Bankruptcy subset: homogeneous cells", "54", of="subset", name="n_homogeneous")
@claim(SETTING, "Bankruptcy subset: non-empty cells", "78", of="subset", name="n_cells")
@claim(SETTING, "Bankruptcy subset: levels of the sensitive attribute (K)", "3", of="subset", name="n_levels")
@claim(SETTING, "Bankruptcy: homogeneous cells", "103", of="bankruptcy", name="n_homogeneous")
@claim(SETTING, "Bankruptcy: non-empty cells", "103", of="bankruptcy", name="n_cells")
@claim(SETTING, "Bankruptcy: observations", "250", of="bankruptcy", name="n_records")
@claim(SETTING, "Adult: individuals", "27,504", of="adult", name="n_records")
def counted(results: Results, of: str, name: str, power: int = 1) -> float:
    return float(getattr(getattr(results, of).table.profiles(), name)) ** power


@claim(SETTING, "Bankruptcy: levels of each of the six quasi-identifiers", "3")
def levels(results: Results) -> float:
    return float(np.mean([len(domain) for domain in results.bankruptcy.table.cells().domains]))


@claim(SETTING, "Adult: non-empty cells of the six quasi-identifiers", "5,974", ROWS)
def adult_cells(results: Results) -> Finding:
    rows, cells = results.rows.table.n_cells, results.adult.table.n_cells
    return Finding(f"{cells:,} cells, {rows:,} rows", float(cells))


@claim(SETTING, "Adult: each cell is homogeneous on income", "all")
def adult_homogeneous(results: Results) -> Finding:
    profiles = results.adult.table.profiles()
    why = f"{ROWS} People of both incomes share {profiles.n_heterogeneous:,} of the cells."
    ours = f"{profiles.n_homogeneous:,} homogeneous, {profiles.n_heterogeneous:,} heterogeneous"
    return Finding(ours, profiles.n_heterogeneous == 0, why=why)


@claim(CAPTION, "Adult: cell sizes", "1 to 240", f"It holds for the rows. {ROWS}")
def adult_sizes(results: Results) -> Finding:
    sizes = (each.table.profiles().sizes[0] for each in (results.rows, results.adult))
    rows, cells = (f"{each[0]} to {each[-1]}" for each in sizes)
    return Finding(f"rows {rows}, cells {cells}", cells == "1 to 240", rows == "1 to 240")


@claim(CAPTION, "Adult: cells with more than 120 records", "6", f"It holds for the rows. {ROWS}")
def adult_large(results: Results) -> Finding:
    sizes = (each.table.profiles().sizes for each in (results.rows, results.adult))
    rows, cells = (float(many[size > 120].sum()) for size, many in sizes)
    return Finding(f"{rows:.0f} rows, {cells:.0f} cells", cells, rows)


@claim(FOOTNOTE, f"Adult: {RATE}", "4.6")
def adult_rate(results: Results) -> Finding:
    """The paper's footnote: n ~ Poisson(beta) by maximum likelihood, not truncated at zero."""
    (rows, truncated), (cells, _) = results.rows.rates, results.adult.rates
    why = f"It holds for the rows. {TRUNCATED.format(truncated)}"
    return Finding(f"rows {rows:.2f}, cells {cells:.2f}", cells, rows, why)


@claim(FOOTNOTE, f"Bankruptcy subset: {RATE}", "3.21", of="subset")
@claim(FOOTNOTE, f"Bankruptcy: {RATE}", "2.43", of="bankruptcy")
def bankruptcy_rate(results: Results, of: str) -> Finding:
    plain, truncated = getattr(results, of).rates
    return Finding(f"{plain:.4g}", plain, why=TRUNCATED.format(truncated))


@claim(f"{LIST}, 1", "Sanitisation lowers the risk below that of the raw table", "always")
def mitigation(results: Results) -> Finding:
    lines, defined = (paper_lines(each, *MECHANISMS) for each in (results.published, [results.adult]))
    above, also = (max(float((line.risk - line.limits.raw).max()) for line in each) for each in (lines, defined))
    passes = "never pass" if above <= ROUNDING else f"pass by up to {above:.3f}"
    ours = f"the paper's {len(lines)} curves {passes} above it; Adult's as defined pass by up to {also:.3f}"
    why = "Heterogeneous cells have no risk in the raw table, and some under noise, which can raise the published form."
    return Finding(ours, max(above, also) <= ROUNDING, above <= ROUNDING, why)


@claim(BOTH_1, "Risk along log(epsilon) follows an S for the Laplace and the pDP mechanism", "all curves")
def shape(results: Results) -> Finding:
    """An S never falls, and bends once along the logarithm of epsilon."""
    lines, defined = (paper_lines(each, "laplace", "gaussian-pdp") for each in (results.published, [results.adult]))
    good = sum(rises(line) and bends(line) == 1 for line in lines)
    fall, also = (sum(not rises(line) for line in each) for each in (lines, defined))
    ours = f"{good} of {len(lines)} rise and bend once, {fall} fall somewhere; as defined, {also} of Adult's "
    why = "By records, Adult's risk under pDP rises in two steps. Heterogeneous cells lose risk as epsilon grows."
    return Finding(f"{ours}{len(defined)} fall somewhere", good == len(lines) and not also, good > 0, why)


@claim(f"{LIST}, 2", "The risk is close to its minimum below epsilon 0.1", "close")
def minimum(results: Results) -> Finding:
    lines = paper_lines(results.published, "laplace", "gaussian-pdp")
    gaps = {w: [line.at(0.1) - line.limits.chance for line in lines if line.weights == w] for w in WEIGHTINGS}
    every = [*gaps["uniform"], *gaps["records"]]
    words = ", ".join(f"{span(gaps[weights])} {words}" for weights, words in WEIGHTINGS.items())
    why = f"Close means within {NEAR} here; large cells show early, so averages by records leave it first."
    return Finding(f"at epsilon 0.1 it is above its lower end by {words}", max(every) <= NEAR, min(every) <= NEAR, why)


@claim(f"{LIST}, 2", "The drastic increase is between epsilon 1 and 10", "most of it")
def increase(results: Results) -> Finding:
    both = (paper_lines(results.published, name) for name in ("laplace", "gaussian-pdp"))
    laplace, gaussian = ([covered(line, line.at(10)) - covered(line, line.at(1)) for line in lines] for lines in both)
    ours = f"{span(laplace, 2)} of the way from end to end (Laplace), {span(gaussian, 2)} (Gaussian, pDP)"
    why = "Most means half of the way here: a large part of it is made before epsilon 1, or past 10."
    return Finding(ours, min(laplace + gaussian) >= 0.5, max(laplace + gaussian) >= 0.5, why)


@claim(f"{LIST}, 2", "The maximum is reached above epsilon 10", "reached")
def maximum(results: Results) -> Finding:
    both = (paper_lines(results.published, name) for name in ("laplace", "gaussian-pdp"))
    laplace, gaussian = ([line.limits.raw - line.at(10) for line in lines] for lines in both)
    ours = f"at epsilon 10 it is {span(laplace)} away (Laplace), {span(gaussian)} (Gaussian, pDP)"
    why = f"Reached means within {REACHED} here; it holds for Laplace, while section 5.2 itself says 31.6 for pDP."
    return Finding(ours, max(laplace + gaussian) <= REACHED, max(laplace) <= REACHED, why)


@claim(BOTH_4, "The impact of delta on the risk is minor beside that of epsilon", "minor")
def influence_of_delta(results: Results) -> Finding:
    kinds = [{"mechanism": name, "weights": weights} for name in MECHANISMS[1:] for weights in WEIGHTINGS]
    risks = [np.stack([line.risk for line in each.find(**kind)]) for each in results.published for kind in kinds]
    by_delta, by_epsilon = ([float(np.ptp(each, axis=axis).max()) for each in risks] for axis in (0, 1))
    shares = [delta / epsilon for delta, epsilon in zip(by_delta, by_epsilon, strict=True)]
    ours = f"delta moves the risk by up to {span(by_delta)} at one epsilon, epsilon by {span(by_epsilon)} along a curve"
    why = f"Minor means a quarter here: over the paper's deltas it is {span(shares, 2)} of epsilon's."
    return Finding(ours, max(shares) <= 0.25, min(shares) <= 0.5, why)


@claim(f"{LIST}, 3", "The curves of Adult and Bankruptcy are similar", "similar")
def similarity(results: Results) -> Finding:
    rows, adult, bankruptcy = (each.weighted() for each in (results.rows, results.adult, results.bankruptcy))
    gaps = [largest_gap([row], [other]) for row, other in zip(rows, bankruptcy, strict=True)]
    ours = [f"{gap:.3f} apart at most {words}" for gap, words in zip(gaps, WEIGHTINGS.values(), strict=True)]
    defined = f"Adult as defined is up to {largest_gap(adult, bankruptcy):.2f} away."
    why = f"Similar means within {NEAR} here; and it rests on rows taken for cells: {defined}"
    return Finding(", ".join(ours), max(gaps) <= NEAR, min(gaps) <= NEAR, why)


@claim(f"{LIST}, 4", "Epsilon around 1 seems a good choice against the attack", "a good choice")
def around_one(results: Results) -> Finding:
    lines = {each.name: each.weighted() for each in results.published}
    parts = [f"{name} {span([line.at(1) for line in both], 2)}" for name, both in lines.items()]
    shares = [covered(line, line.at(1)) for both in lines.values() for line in both]
    tight = results.adult.weighted(form="tight")[1]
    defined = f"as defined, Adult reveals {tight.at(1):.2f} of people, {tight.limits.raw:.2f} without noise."
    why = f"A judgement: {span(shares, 2)} of the way to the raw table's risk is made there; {defined}"
    return Finding(f"risk at epsilon 1 (Laplace): {', '.join(parts)}", max(shares) <= 0.25, max(shares) < 1, why)


@claim(RESULTS, "Local and expected risk are the same in Adult and Bankruptcy", "the same")
def equality(results: Results) -> Finding:
    gaps = {}
    for each in (*results.homogeneous, results.adult):
        local, expected = (each.find(mechanism=MECHANISMS, measure=measure) for measure in ("local", "expected"))
        gaps[each] = largest_gap(local, expected)
    ours = [f"{each.label}: {'no gap' if gap < ROUNDING else f'gap {gap:.3f}'}" for each, gap in gaps.items()]
    why = "It holds where all cells are homogeneous, which Adult's are only if rows are taken for cells."
    in_part = max(gaps[each] for each in results.homogeneous) < ROUNDING
    return Finding(", ".join(ours), max(gaps.values()) < ROUNDING, in_part, why)


@claim(ITEM_2, f"{IS_ONE} from epsilon 31.6 on (Gaussian, pDP), whatever the delta", "1", mechanism="gaussian-pdp")
@claim(ITEM_2, f"{IS_ONE} from epsilon 10 on (Laplace)", "1", mechanism="laplace")
def reached(results: Results, mechanism: str) -> Finding:
    epsilon = 10.0 if mechanism == "laplace" else 10.0**1.5
    risks = [line.at(epsilon) for each in results.homogeneous for line in each.find(mechanism=mechanism)]
    why = f"Reached means within {REACHED} here: the smaller the delta, the later it is reached."
    holds, in_part = (end >= 1.0 - REACHED for end in (min(risks), max(risks)))
    return Finding(f"{span(risks, 4)} at epsilon {epsilon:.3g}", holds, in_part, why)


@claim(f"{RESULTS}, item 4", "Below epsilon 1 the risk under pDP is slightly larger than under DP", "+0.05")
def gain(results: Results) -> Finding:
    """Probabilistic minus classical, below epsilon 1: the largest gap, and the median along log(epsilon)."""
    gaps, parts = [], []
    for experiment in results.published:
        for delta in experiment.deltas:
            both = (experiment.weighted(name, delta=delta) for name in MECHANISMS[1:])
            own = [pdp.risk[: len(dp.risk)] - dp.risk for dp, pdp in zip(*both, strict=True)]
            parts.append(f"{experiment.name}, delta {delta:g}: {span(gap.max() for gap in own)}")
            gaps += own
    largest, typical = [float(gap.max()) for gap in gaps], [float(np.median(gap)) for gap in gaps]
    where = "larger everywhere" if min(gap.min() for gap in gaps) >= -ROUNDING else "not everywhere larger"
    ours = f"{where}; largest gap {span(largest)}, typical (median) {span(typical)}"
    why = f"It depends on epsilon and on the delta. Largest gaps: {'; '.join(parts)}."
    holds = max(abs(gap - 0.05) for gap in largest) < 0.005
    return Finding(ours, holds, min(largest) <= 0.05 <= max(largest), why)


@claim(EXPERIMENTS, "The classical Gaussian mechanism is examined up to epsilon 1", "0.001 to 1")
def classical_end(results: Results) -> Finding:
    end = results.adult.find(mechanism="gaussian")[0].setting.largest_epsilon
    why = "Its guarantee needs epsilon below 1, as the paper says elsewhere; at 1 itself there is none."
    return Finding(f"{end:.16g} is the largest epsilon with a guarantee", end >= 1.0, 0.999 < end < 1.0, why)


@claim(FOOTNOTE, "Simulated (empirical) and theoretical risks are nearly identical", "nearly identical")
def simulated(results: Results) -> Finding:
    gaps = {each.name: largest_gap(each.weighted(form="exact"), each.weighted()) for each in results.published}
    ours = ", ".join(f"{name}: {gap:.3f} apart" for name, gap in gaps.items())
    why = "What simulations tend to is the exact risk; the closed form is above it where cells are heterogeneous."
    return Finding(ours, max(gaps.values()) <= 0.005, min(gaps.values()) <= 0.005, why)


@claim(HOMOGENEOUS, "Adult: the risk as epsilon falls to 0", "0.25", "It holds for the rows.", of="rows", end="chance")
@claim(HOMOGENEOUS, "Adult: the risk as epsilon grows", "1", "It holds for the rows.", of="rows", end="raw")
@claim(HOMOGENEOUS, "Bankruptcy: the risk as epsilon falls to 0", "0.25", of="bankruptcy", end="chance")
@claim(HOMOGENEOUS, "Bankruptcy: the risk as epsilon grows", "1", of="bankruptcy", end="raw")
def end_of_homogeneous(results: Results, of: str, end: str) -> Finding:
    """One end of the local risk, each cell alike and by records; of Adult, beside that of the cells as defined."""
    both = (getattr(results, of).weighted(), results.adult.weighted())
    ends, others = ([getattr(line.limits, end) for line in lines] for lines in both)
    agree, also = (np.allclose(each, 1.0 if end == "raw" else 0.25, rtol=0, atol=5e-4) for each in (ends, others))
    if of == "bankruptcy":
        return Finding(span(ends), agree)
    cells = f"{others[0]:.3f} each cell alike, {others[1]:.3f} by records" if end == "raw" else span(others)
    return Finding(f"{span(ends)}; as defined {cells}", agree and also, agree)


def end_of_subset(results: Results, measure: str, weights: str, end: str) -> float:
    (line,) = results.subset.find(mechanism="laplace", measure=measure, weights=weights)
    return float(getattr(line.limits, end))


for measure, weights, upper, lower in (
    ("local", "uniform", "0.69", "0.16"),
    ("local", "records", "0.57", "0.18"),
    ("expected", "uniform", "0.75", "0.16"),
    ("expected", "records", "0.63", "0.17"),
):
    start = f"Bankruptcy subset: {measure} risk, {WEIGHTINGS[weights]}, as epsilon"
    claim(SUBSET, f"{start} grows", upper, measure=measure, weights=weights, end="raw")(end_of_subset)
    claim(SUBSET, f"{start} falls to 0", lower, measure=measure, weights=weights, end="chance")(end_of_subset)


@claim(SUBSET, f"{LOWER_ENDS} of local and expected risk, each cell alike, are the same", "the same")
def same_lower_end(results: Results) -> Finding:
    local, expected = (end_of_subset(results, measure, "uniform", "chance") for measure in ("local", "expected"))
    rounded = same("0.16", local) and same("0.16", expected)
    why = "They are the same at two digits, not the same number."
    return Finding(f"{local:.4f} and {expected:.4f}", abs(local - expected) < 0.00005, rounded, why)


@claim(SUBSET, "Bankruptcy subset: the expected risk tends to the average of p^n + (1 - p)^n", "as epsilon grows")
def two_levels(results: Results) -> Finding:
    """sum_k p_k^n is what the curve tends to; the text writes p^n + (1 - p)^n, with p the largest share here."""
    profiles = results.subset.table.profiles()
    limit, printed, crowded = np.zeros(2), np.zeros(2), 0
    for counts, cells in profiles.rows():
        n, shares = sum(counts), np.array(counts) / sum(counts)
        weights = np.array([cells / profiles.n_cells, cells * n / profiles.n_records])
        limit += weights * (shares**n).sum()
        printed += weights * (shares[0] ** n + (1.0 - shares[0]) ** n)
        crowded += cells * (len(counts) > 2)
    ours = f"that average is {printed[0]:.4f} / {printed[1]:.4f}, the limit {limit[0]:.4f} / {limit[1]:.4f}"
    why = f"That is for K = 2; for K = 3 it is the sum of p_k^n. Cells with 3 labels: {crowded} of {profiles.n_cells}."
    apart = float(np.abs(limit - printed).max())
    return Finding(ours, apart < ROUNDING, apart < 0.005, why)


@claim(UTILITY, "Number of 3-way marginals", "20", way=3)
@claim(UTILITY, "Number of 2-way marginals", "15", way=2)
@claim(UTILITY, "Number of 1-way marginals", "6", way=1)
def marginals(results: Results, way: int) -> float:
    return float(sum(len(columns) == way for columns in results.distances[0].marginals))


@claim(UTILITY, "TVD drops notably from epsilon 1 to 10", "notably", NOTABLE, start=1.0, end=10.0)
@claim(UTILITY, "TVD drops notably from epsilon 0.1 to 1", "notably", NOTABLE, start=0.1, end=1.0)
def drop(results: Results, start: float, end: float) -> Finding:
    """The mean over the marginals, under every mechanism that has both epsilons."""
    drops, parts = [], []
    for way in WAYS:
        means = mean_distances(results, way)
        for (name, delta, epsilon), before in means.items():
            after = means.get((name, delta, end))
            if epsilon == start and after is not None:
                drops.append((before - after) / before)
                parts += [f"{way}-way {before:.3f} to {after:.3f}"] if name == "laplace" else []
    ours = f"Laplace: {', '.join(parts)}; by {span(drops, 2)} of it over all mechanisms and deltas"
    return Finding(ours, min(drops) >= 0.25, max(drops) >= 0.25)


def mean_distances(results: Results, way: int) -> dict[tuple[str, float, float], float]:
    """Return the mean distance of the marginals of one way, by mechanism, delta and epsilon (0.99... counts as 1)."""
    distances = results.distances[0]
    kinds = [(each.name, each.delta, round(each.epsilon, 6)) for each in distances.mechanisms]
    return dict(zip(kinds, distances.mean_tvd(way).tolist(), strict=True))


@claim(UTILITY, "Delta matters most for TVD when epsilon is around 1", "around 1")
def largest_influence(results: Results) -> Finding:
    """The epsilon at which the means for the deltas are furthest apart."""
    near, parts = [], []
    for mechanism in MECHANISMS[1:]:
        for way in WAYS:
            means: dict[float, list[float]] = {}
            for (name, _, epsilon), mean in mean_distances(results, way).items():
                means.setdefault(epsilon, []).extend([mean] if name == mechanism else [])
            spreads = {max(each) - min(each): epsilon for epsilon, each in means.items() if each}
            widest = spreads[max(spreads)]
            near.append(0.3 < widest < 3)
            parts.append(f"{mechanism} {way}-way at {widest:.3g} ({max(spreads):.3f})")
    why = "The classical Gaussian mechanism ends below 1, so it cannot be otherwise there than towards its end."
    return Finding(f"means are furthest apart: {', '.join(parts)}", all(near), any(near), why)


@claim("6 Discussion", f"{GEOMETRIC}, whose counts are more accurate, is expected to have a higher risk", "higher")
def geometric_noise(results: Results) -> Finding:
    gaps = []
    for experiment in results.experiments[1:]:
        for form in ("published", "tight"):
            both = (experiment.weighted(name, form=form) for name in ("laplace", "geometric"))
            gaps += [geometric.risk - laplace.risk for laplace, geometric in zip(*both, strict=True)]
    above, below = max(float(gap.max()) for gap in gaps), max(float(-gap.min()) for gap in gaps)
    ours = f"local risk above that under Laplace noise by up to {above:.3f}, below it by up to {below:.3f}"
    why = "It is lower at some epsilons: heterogeneous cells look homogeneous less often under smaller noise."
    return Finding(ours, below <= ROUNDING, above > ROUNDING, why)


def guess_ends(experiment: Experiment, attack: str, end: str) -> list[float]:
    return [getattr(line.limits, end) for line in experiment.weighted(attack=attack, form="tight")]


@claim(DISCUSSION, "Thresholding: the upper asymptotes are still 100%", "1")
def guesses_above(results: Results) -> Finding:
    rows = [end for attack in GUESSES for end in guess_ends(results.rows, attack, "raw")]
    cells = {attack: guess_ends(results.adult, attack, "raw") for attack in GUESSES}
    parts = ", ".join(f"{attack} {span(ends)}" for attack, ends in cells.items())
    why = "It holds if rows are taken for cells; as defined, a guess in a heterogeneous cell is wrong for some."
    least = min(min(ends) for ends in cells.values())
    return Finding(f"rows {span(rows)}; as defined {parts}", min(least, *rows) > 0.9995, min(rows) > 0.9995, why)


@claim(DISCUSSION, "Thresholding: the lower asymptotes are above 0.25", "> 0.25")
def guesses_below(results: Results) -> Finding:
    both = (results.rows, results.adult)
    ends = [end for each in both for attack in GUESSES for end in guess_ends(each, attack, "chance")]
    return Finding(span(ends), min(ends) > 0.25)


@claim(DISCUSSION, "Thresholding: the curves are flatter than those of the homogeneity attack", "flatter")
def guesses_flatter(results: Results) -> Finding:
    lines = [results.rows.weighted(attack=attack, form="tight") for attack in ("homogeneity", *GUESSES)]
    steep, *guesses = [line.limits.raw - line.limits.chance for both in lines for line in both]
    ours = f"{span(guesses[1:])} from end to end, {steep:.3f} for the homogeneity attack"
    return Finding(ours, max(guesses[1:]) < steep)
