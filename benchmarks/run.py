"""Speed and memory, measured side by side in one run: `make bench`.

Each line says what was measured, what it took, and what it is compared with: a goal, or another way to do the same
work in the same run. Machines differ and are noisy; read the ratios.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line does

import numpy as np
import pandas as pd

import cellrisk as cr
from cellrisk.counts.profiles import LabelledCounts, LevelCounts, Profiles
from cellrisk.counts.table import Attribute
from cellrisk.noise.channel import AdditiveChannel
from cellrisk.risk.certainty import find_certainty, read_belief
from cellrisk.risk.measures import MEASURES, Local, average_risks
from cellrisk.risk.measures.dirichlet import fit_dirichlet
from cellrisk.risk.measures.given_total import Expected
from cellrisk.risk.measures.sizes import fit_sizes
from cellrisk.risk.priors import Fitted
from cellrisk.system.arrays import Integers

QIDS = ["age", "relationship", "education", "race", "sex", "hours-per-week"]
BINS = {"age": 5, "hours-per-week": 10}


def seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Median time after one warm-up."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def show(what: str, took: str, compared: str) -> None:
    print(f"{what:<66} {took:>12}   {compared}")


def bench_adult() -> None:
    table = cr.tabulate(cr.datasets.adult_as_published(), QIDS, "income", bins=BINS)
    one = seconds(lambda: cr.assess(table, cr.Laplace(epsilon=1.0)))
    show("Adult, assess: 5 measures, 3 forms, 2 weights, 1 epsilon", f"{one * 1e3:.0f} ms", "goal 50 ms")
    attribute = table.attribute("income")
    for name in ("laplace", "gaussian-analytic", "geometric"):
        pure = name != "gaussian-analytic"
        settings = [
            cr.mechanism(name, epsilon=float(e), delta=None if pure else 1e-5) for e in np.geomspace(1e-3, 100, 501)
        ]

        def curve(settings: list[cr.Mechanism] = settings) -> None:
            prior = fit_dirichlet(attribute.profiles, attribute.levels)
            sizes = fit_sizes(attribute.profiles)
            measures = [Fitted(prior, sizes).measure(measure) for measure in MEASURES]
            channel = AdditiveChannel(tuple(setting.noise for setting in settings))
            list(average_risks(attribute.profiles, measures, channel))

        many = seconds(curve, repeats=3)
        ratio = f"goal 1.5 s; {501 * one / many:.0f} times faster than one by one"
        show(f"Adult, the same at 501 epsilons, {name}", f"{many:.2f} s", ratio)


def bench_decisions() -> None:
    table = cr.tabulate(cr.datasets.adult_as_published(), QIDS, "income", bins=BINS)
    for measure in MEASURES:
        took = seconds(lambda measure=measure: cr.choose(table, max_risk=0.3, measure=measure), repeats=3)
        show(f"Adult, choose: the whole admissible set, {measure}", f"{took:.2f} s", "goal 1 s")
    generator = np.random.default_rng(
        3
    )  # the size of the paper's Bankruptcy subset: five attributes of three levels, K = 3
    columns = {
        name: generator.choice(["P", "A", "N"], 250, p=[0.2, 0.3, 0.5]) for name in ("a", "b", "c", "d", "e", "y")
    }
    subset = cr.tabulate(pd.DataFrame(columns), list("abcde"), "y")
    settings = [cr.Laplace(epsilon=epsilon) for epsilon in (0.01, 0.1, 0.5, 1.0, 5.0, 10.0)]
    took = seconds(lambda: cr.utility(subset, settings), repeats=3)
    show("utility: 41 marginals, 6 epsilons, 100 releases", f"{took:.2f} s", "goal 2 s")


def bench_release() -> None:
    levels = {name: [str(value) for value in range(10)] for name in "abcdef"}
    generator = np.random.default_rng(4)
    frame = pd.DataFrame({name: generator.integers(0, 10, 50_000).astype(str) for name in levels})
    table = cr.tabulate(frame, list("abcde"), "f", levels=levels)
    took = seconds(lambda: cr.release(table, cr.Geometric(epsilon=1.0)), repeats=1)
    show("release: a million counts, geometric noise by OpenDP", f"{took:.1f} s", "goal 15 s")
    adult = cr.tabulate(cr.datasets.adult_as_published(), QIDS, "income", bins=BINS)
    took = seconds(lambda: cr.simulate(adult, cr.Laplace(epsilon=1.0)), repeats=3)
    show("Adult, simulate: 1,000 releases, three attacks", f"{took:.2f} s", "goal 2 s")


def synthetic_profiles(n_profiles: int, n_levels: int) -> Profiles:
    """Distinct profiles of skewed cells, as large administrative tables have them."""
    generator = np.random.default_rng(5)
    shares = np.array([0.4, 0.25, 0.15, 0.12, 0.08])[:n_levels]
    sizes = generator.negative_binomial(1.2, 0.02, 8 * n_profiles) + 1
    profiles = Profiles.from_cells(generator.multinomial(sizes, shares / shares.sum()), n_levels)
    kept = []
    for block in profiles.blocks:
        kept.append(block[: max(0, n_profiles - sum(len(other) for other in kept))])
    return Profiles(n_levels, tuple(block for block in kept if len(block)))


def bench_many_profiles() -> None:
    profiles = synthetic_profiles(200_000, 5)
    channel = AdditiveChannel(tuple(cr.Laplace(epsilon=float(e)).noise for e in np.geomspace(1e-3, 100, 101)))
    took = seconds(lambda: Local().average(profiles, channel), repeats=1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    what = f"{profiles.n_profiles:,} profiles, K = 5, 101 epsilons, local, 3 forms"
    show(what, f"{took:.2f} s", f"goal 3 s; peak {peak / 1024:.0f} MB, goal 1 GB")
    one = seconds(lambda: Expected().average(profiles, cr.Laplace(epsilon=1.0).channel), repeats=1)
    show(f"{profiles.n_profiles:,} profiles, K = 5, 1 epsilon, expected, 3 forms", f"{one:.2f} s", "")


def bench_large_cell() -> None:
    channel = cr.Laplace(epsilon=0.1).channel

    def cell(size: int) -> Callable[[], object]:
        profiles = Profiles.from_cells([[size - 60, 50, 10]], 5)
        return lambda: Expected().average(profiles, channel, ("exact",))

    small, large = seconds(cell(10_000)), seconds(cell(1_000_000))
    ratio = f"{large / small:.1f} times a cell of 10,000 (n^2 would be 10,000 times)"
    show("expected, exact: one cell of a million records", f"{large * 1e3:.1f} ms", ratio)


def made_cells(n_cells: int, n_levels: int, people: int, largest: int) -> Integers:
    """A table as administrations have them: sizes nearly log-normal, a Dirichlet draw of proportions for each cell."""
    generator = np.random.default_rng(1)
    drawn = np.sort(generator.lognormal(0.0, 1.6, n_cells))[::-1]

    def sizes(power: float) -> Integers:
        return np.maximum(1, np.rint(largest * (drawn / drawn[0]) ** power)).astype(np.int64)

    low, high = 0.05, 6.0  # the larger the power, the fewer people
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if sizes(middle).sum() > people else (low, middle)
    proportions = generator.dirichlet(generator.gamma(1.0, 1.0, n_levels) + 1e-3, n_cells)
    return np.stack([generator.multinomial(n, p) for n, p in zip(sizes(high), proportions, strict=True)])


def processor_seconds(work: Callable[[], object]) -> float:
    """Processor time of one run: less at the mercy of what else runs than the clock."""
    start = time.process_time()
    work()
    return time.process_time() - start


def growth(sizes: list[float], work: Callable[[float], Callable[[], object]]) -> tuple[float, str]:
    """The exponent g of cost ~ size^g, fitted to the logarithms, and the times that it is fitted to."""
    times = [processor_seconds(work(size)) for size in sizes]
    exponent = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
    return exponent, ", ".join(f"{took * 1e3:.0f} ms at {size:g}" for size, took in zip(sizes, times, strict=True))


def bench_growth() -> None:
    """Cost of each risk against the size of cells, the number of labels and the inverse of epsilon."""

    def average(name: str, largest: int, n_levels: int, epsilon: float) -> Callable[[], object]:
        cells = made_cells(40, n_levels, 8 * largest, largest)
        profiles = Profiles.from_cells(cells, n_levels)
        prior = fit_dirichlet(profiles, LevelCounts.from_cells(cells, [str(level) for level in range(n_levels)]))
        measure = Fitted(prior, fit_sizes(profiles)).measure(name)
        return lambda: measure.average(profiles, cr.Laplace(epsilon=epsilon).channel)

    average("marginal_shrinkage", 1000, 3, 1.0)()  # what is loaded late is loaded now
    for name in MEASURES:
        for what, sizes, work in (
            ("n, K = 7, epsilon 0.01", [1e3, 1e4, 1e5], lambda n, name=name: average(name, int(n), 7, 0.01)),
            ("K, n = 1,000, epsilon 1", [40.0, 200.0, 1000.0], lambda k, name=name: average(name, 1000, int(k), 1.0)),
            ("1/epsilon, n = 100,000", [1.0, 30.0, 1000.0], lambda e, name=name: average(name, 100_000, 7, 1.0 / e)),
        ):
            exponent, times = growth(sizes, work)
            show(f"{name}: cost against {what}", f"^{exponent:.2f}", times)


def write_cells(cells: Integers, path: Path) -> tuple[str, ...]:
    """A file of counts, and the words that read it."""
    row, level = np.nonzero(cells)
    labels = [f"v{k}" for k in level]
    pd.DataFrame({"cell": row, "label": labels, "n": cells[row, level]}).to_csv(path, index=False)
    return str(path), "--qid", "cell", "--sensitive", "label", "--count", "n"


def command_seconds(*arguments: str) -> float:
    """Processor time of the command, from its start to the printed page."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = str(Path(sys.executable).with_name("cellrisk"))
    subprocess.run([command, *arguments], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def bench_command() -> None:
    """`cellrisk assess`, every risk, printed: from a file of 1.4 million people in 334 cells; processor time."""
    with tempfile.TemporaryDirectory() as folder:
        for n_levels in (7, 1000):
            table = write_cells(made_cells(334, n_levels, 1_400_000, 104_087), Path(folder) / f"{n_levels}.csv")
            for epsilon, threshold in (("1", "0.5"), ("0.001", "0.5"), ("1", "50.5"), ("1", "1000.5")):
                setting = (*table, "--epsilon", epsilon, "--threshold", threshold)
                alone = command_seconds("assess", *setting, "--measure", "local")
                for mechanism in ("geometric", "laplace", "gaussian-analytic", "discrete-gaussian"):
                    delta = () if mechanism in ("geometric", "laplace") else ("--delta", "7e-7")
                    took = command_seconds("assess", *setting, "--mechanism", mechanism, *delta)
                    limit = "10 s" if epsilon == "0.001" else "5 s" if n_levels == 1000 else f"{2 * alone + 1:.1f} s"
                    what = f"command: K = {n_levels:,}, {mechanism}, epsilon {epsilon}, threshold {threshold}"
                    show(what, f"{took:.1f} s", f"goal {limit}; local alone {alone:.1f} s")


def bench_command_growth() -> None:
    """The same as a growth exponent: what `assess` takes, printing included, beyond what `inspect` does."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cells.csv"
        for mechanism in ("geometric", "gaussian-analytic"):
            delta = () if mechanism == "geometric" else ("--delta", "7e-7")
            for what, sizes in (
                ("n, K = 7, epsilon 0.01", [1e3, 1e4, 1e5]),
                ("K, n = 1,000, epsilon 1", [120.0, 350.0, 1000.0]),  # certainty is computed up to 100 labels
                ("1/epsilon, n = 100,000, K = 7", [1.0, 30.0, 1000.0]),
            ):
                times = []
                for size in sizes:
                    largest, n_levels, epsilon = {
                        "n": (int(size), 7, 0.01),
                        "K": (1000, int(size), 1.0),
                        "1": (100_000, 7, 1.0 / size),
                    }[what[0]]
                    table = write_cells(made_cells(40, n_levels, 8 * largest, largest), path)
                    words = (*table, "--mechanism", mechanism, *delta, "--epsilon", str(epsilon))
                    times.append(max(command_seconds("assess", *words) - command_seconds("inspect", *table), 0.01))
                exponent = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
                shown = ", ".join(f"{took * 1e3:.0f} ms at {size:g}" for size, took in zip(sizes, times, strict=True))
                show(f"command, {mechanism}: cost against {what}", f"^{exponent:.2f}", shown)


def bench_certainty() -> None:
    """Certainty, processor time: the ends are printed beside it, as a wide gap would be quick."""
    four = (0.8, 0.9, 0.95, 0.99)
    adult = cr.tabulate(cr.datasets.adult_as_published(), QIDS, "income", bins=BINS).attribute()
    belief = read_belief("negbin", adult.levels, adult.profiles.n_cells)
    for number, goal in ((1, "0.3 s"), (61, "5 s")):
        settings = [cr.Laplace(epsilon=float(e)) for e in np.geomspace(1.0 if number == 1 else 0.01, 10, number)]
        took = processor_seconds(
            lambda settings=settings: [find_certainty(adult, each.channel, four, belief) for each in settings]
        )
        show(f"Adult, certainty: four of them at {number} epsilons", f"{took:.2f} s", f"goal {goal}")
    generator = np.random.default_rng(6)
    sizes = generator.negative_binomial(0.5, 0.02, 300) + 1
    small = np.stack([generator.multinomial(n, generator.dirichlet(np.full(100, 0.02))) for n in sizes])
    sizes = generator.negative_binomial(0.5, 0.05, 22_000) + 1
    many = np.stack([generator.multinomial(n, generator.dirichlet(np.geomspace(0.05, 1.0, 7))) for n in sizes])
    cases = [(made_cells(334, 7, 1_400_000, 104_087), epsilon, "5 s") for epsilon in (1.0, 0.01)]
    cases += [(many, epsilon, "1 s") for epsilon in (5.0, 1.0, 0.1)]
    for cells, epsilon, goal in [*cases, (small, 1.0, "10 s")]:
        vectors = LabelledCounts.from_cells(cells)
        levels = LevelCounts.from_cells(cells, [str(level) for level in range(vectors.n_levels)])
        attribute = Attribute("y", levels, vectors.profiles(), False, False, vectors)
        belief, channel = read_belief("negbin", levels, len(cells)), cr.Laplace(epsilon=epsilon).channel
        took = processor_seconds(lambda a=attribute, c=channel, b=belief: find_certainty(a, c, four, b))
        found = find_certainty(attribute, channel, (0.8,), belief)[0]
        ends = f"80% sure of {found.right_low:,.1f} to {found.right_high:,.1f} of {vectors.n_records:,}"
        what = f"certainty: {len(cells):,} cells, K = {vectors.n_levels}, epsilon {epsilon:g}, four of them"
        show(what, f"{took:.1f} s", f"goal {goal}; {ends}")


def bench_attackers() -> None:
    """The table of attackers and choices by it, processor time."""
    adult = cr.tabulate(cr.datasets.adult_as_published(), QIDS, "income", bins=BINS)
    generator = np.random.default_rng(6)
    sizes = generator.negative_binomial(0.5, 0.05, 22_000) + 1
    cells = np.stack([generator.multinomial(n, generator.dirichlet(np.geomspace(0.05, 1.0, 7))) for n in sizes])
    groups, values = np.nonzero(cells)
    frame = pd.DataFrame({"group": groups, "value": values, "n": cells[groups, values]})
    large = cr.tabulate(frame, ["group"], "value", count="n")
    what = f"{large.n_records:,} people, {large.n_cells:,} groups, K = 7"
    epsilons = np.geomspace(0.01, 10.0, 61)

    def attack(table: cr.FrequencyTable, epsilon: float) -> object:
        return cr.assess(table, epsilon=epsilon).to_dict()["attackers"]

    works: list[tuple[str, str, Callable[[], object]]] = [
        ("Adult, attackers: 1 epsilon", "0.5 s", lambda: attack(adult, 1.0)),
        ("Adult, attackers: 61 epsilons", "4 s", lambda: str(cr.curve(adult, epsilon=epsilons))),
        ("Adult, choose by --max-caused", "3 s", lambda: cr.choose(adult, max_caused=0.01).to_dict()),
        (f"attackers: {what}, 1 epsilon", "4 s", lambda: attack(large, 1.0)),
        (f"choose --max-caused: {what}", "60 s", lambda: cr.choose(large, max_caused=0.01).exact_epsilon),
        (f"choose --max-certain: {what}", "60 s", lambda: cr.choose(large, max_certain=0.05).exact_epsilon),
    ]
    for name, goal, work in works:
        show(name, f"{processor_seconds(work):.1f} s", f"goal {goal}")


def bench_start() -> None:
    def starts(code: str) -> float:
        return seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True, capture_output=True), 7)

    bare = starts("pass")
    imported = starts("import cellrisk")
    helped = starts("from cellrisk.cli import main; main(['--help'])")
    show("import cellrisk", f"{imported:.3f} s", f"goal 0.3 s; bare interpreter {bare:.3f} s")
    show("cellrisk --help", f"{helped:.3f} s", f"goal 0.5 s; bare interpreter {bare:.3f} s")


BENCHES = {
    "start": bench_start,
    "adult": bench_adult,
    "decisions": bench_decisions,
    "release": bench_release,
    "large_cell": bench_large_cell,
    "growth": bench_growth,
    "command": bench_command,
    "command_growth": bench_command_growth,
    "certainty": bench_certainty,
    "attackers": bench_attackers,
    "many_profiles": bench_many_profiles,
}


def main() -> None:
    """Each in a process of its own, so that one's peak memory is not another's."""
    for name in sys.argv[1:] or BENCHES:
        if sys.argv[1:]:
            BENCHES[name]()
        else:
            subprocess.run([sys.executable, __file__, name], check=True)


if __name__ == "__main__":
    main()
