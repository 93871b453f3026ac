"""How much is computed, and held in memory, at a time: as much as is promised, in no more steps than that takes.

What is measured is what the innermost functions are asked for; that the figures do not depend on it is held beside
each, and for whole measures in test_large_cells.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy import fft

from cellrisk.counts.profiles import Profiles
from cellrisk.noise.channel import AdditiveChannel
from cellrisk.noise.distributions import GaussianNoise, GeometricNoise, InfiniteNoise, LaplaceNoise, NoNoise
from cellrisk.noise.perturbations import read_perturbation
from cellrisk.risk.measures import (
    Expected,
    Local,
    channel,
    dirichlet,
    expected,
    label_counts,
    local,
    marginal,
    sequences,
    shrinkage,
    transforms,
)
from cellrisk.risk.measures.measure import join_blocks
from cellrisk.risk.measures.pmf import first_count, last_count, poisson_pmf
from cellrisk.risk.measures.sizes import PoissonSizes
from cellrisk.system.arrays import Floats, Integers
from tests.measures.watched import Watched
from tests.near import near

MEGABYTE = 1 << 20


@pytest.mark.parametrize(
    ("method", "megabytes", "cells", "long", "short"),
    [
        ("_shifted", 0.25, 400, 300, 20),
        ("_transformed", 8, 2200, 400, 101),
        ("_one_by_one", 8, 2200, 400, 101),
    ],
)
def test_sequences_are_convolved_so_many_megabytes_at_a_time(
    method: str, megabytes: float, cells: int, long: int, short: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stays in the processor's cache where terms are shifted and added, else eight megabytes of results."""
    watched = Watched(monkeypatch, sequences, method)
    generator = np.random.default_rng(3)
    x, y = generator.random((cells, long, 1)), generator.random((cells, short, 1))
    way = sequences.convolve if method == "_one_by_one" else sequences.convolve_fast
    for first, second in ((x, y), (y, x)):
        watched.calls.clear()
        found = way(first, second, 600)
        for cell in (0, cells // 2, cells - 1):
            assert found[cell, :, 0] == near(np.convolve(x[cell, :, 0], y[cell, :, 0]))
        sizes = [out.nbytes / MEGABYTE for _, _, out in watched.calls]
        assert sum(sizes) == near(found.nbytes / MEGABYTE)
        assert all(0.98 * megabytes < size <= megabytes for size in sizes[:-1])
        assert len(sizes) > 1
        assert all(long.shape[1] >= short.shape[1] for long, short, _ in watched.calls)


def test_sequences_are_joined_eight_megabytes_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """None survives, one survives: each is the sum of two convolutions, whatever is transformed at once."""
    generator = np.random.default_rng(6)
    x, y = ([generator.random((5, width, 2)) for width in widths] for widths in ((90, 120), (70, 100)))
    for limit in (60, 130, 1000):
        theirs = [np.zeros((5, min(width, limit), 2)) for width in (159, 189)]
        for cell, noise in np.ndindex(5, 2):
            none, one = ([part[cell, :limit, noise] for part in parts] for parts in (x, y))
            theirs[0][cell, :, noise] = np.convolve(none[0], one[0])[:limit]
            for pair in ((none[1], one[0]), (none[0], one[1])):
                part = np.convolve(*pair)[:limit]
                theirs[1][cell, : len(part), noise] += part
        for at_once in (MEGABYTE, 900, 1):
            monkeypatch.setattr(sequences, "TRANSFORMED_AT_ONCE", at_once)
            found = sequences.join_fast(x, y, limit)
            for ours, plain in zip(found, theirs, strict=True):
                assert ours == near(plain)


def test_one_cell_at_least_is_convolved_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long its sequence: 40,000 numbers are more than are taken together."""
    watched = Watched(monkeypatch, sequences, "_shifted")
    x, y = np.ones((3, 40_000, 1)), np.ones((3, 2, 1))
    assert sequences.convolve(x, y, 50_000)[:, 1, 0].tolist() == [2.0, 2.0, 2.0]
    assert [len(out) for _, _, out in watched.calls] == [1, 1, 1]


def test_probabilities_of_one_label_are_computed_eight_megabytes_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand labels and sizes that are not consecutive, so that each is computed by itself."""
    monkeypatch.setattr(
        dirichlet, "_log_one_label", lambda concentration, share, rest, n: np.zeros((len(n), len(share)))
    )
    share = np.full(1024, 1 / 1024)
    rows = [place for place, _ in dirichlet._one_label(2.0, share, 1 - share, 2 * np.arange(1, 2501))]
    assert [len(few) * 1024 * 8 / MEGABYTE for few in rows[:-1]] == [8.0, 8.0]
    assert np.concatenate(rows).tolist() == list(range(2500))


@pytest.mark.parametrize("concentration", [0.7, 40.0, math.inf])
def test_of_consecutive_sizes_one_in_64_is_computed(concentration: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others follow from it, in runs that begin anew after every gap; at infinity each is computed by itself."""
    watched = Watched(monkeypatch, dirichlet, "_log_one_label")
    share, rest = np.array([0.2, 0.8]), np.array([0.8, 0.2])
    sizes = np.concatenate([np.arange(1, 201), np.arange(202, 266), [300], np.arange(400, 465)])
    found = np.zeros((len(sizes), 2))
    for rows, chance in dirichlet._one_label(concentration, share, rest, sizes):
        assert not found[rows].any()
        found[rows] = chance
    asked = np.concatenate([n[:, 0] for _, _, _, n in watched.calls])
    if math.isfinite(concentration):
        assert asked.tolist() == [1, 65, 129, 193, 202, 300, 400, 464]
        one_by_one = np.cumprod(
            (concentration * share + np.arange(500)[:, None]) / (concentration + np.arange(500)[:, None]), 0
        )
    else:
        assert asked.tolist() == sizes.tolist()
        one_by_one = share ** np.arange(1, 501)[:, None]
    assert found == pytest.approx(one_by_one[sizes - 1], rel=1e-12, abs=0)


@pytest.mark.parametrize(
    ("labels", "noises", "rows"),
    [(2, 1, (262_144, 32_768)), (16, 4, (65_536, 8_192)), (17, 1, (61_680, 32_768)), (64, 3, (5_461, 10_922))],
)
def test_rows_at_once(labels: int, noises: int, rows: tuple[int, int]) -> None:
    """Two megabytes for each label, or half of that for all where they are many; 32,768 rows where labels are drawn."""
    block = Profiles.from_cells([(1,) * labels], n_levels=labels).blocks[0]
    several = AdditiveChannel(LaplaceNoise.at_scales(np.linspace(1.0, 2.0, noises)))
    assert (Local().rows_at_once(block, several), Expected().rows_at_once(block, several)) == rows


def test_marginal_risk_holds_eight_megabytes() -> None:
    """Rows times nodes times labels or noises, whichever are more."""
    asked = marginal.Marginal(PoissonSizes(300.0, truncated=True, source="given"))
    nodes = len(asked.sizes.size_biased_mixture()[0])
    for labels, noises in ((20, 3), (3, 20)):
        block = Profiles.from_cells([(1,) * labels], n_levels=labels).blocks[0]
        several = AdditiveChannel(LaplaceNoise.at_scales(np.linspace(1.0, 2.0, noises)))
        assert asked.rows_at_once(block, several) == 8 * MEGABYTE // (8 * nodes * 20)


def test_cells_of_many_labels_are_joined_up_to_two_megabytes() -> None:
    """Beside others with up to a quarter more labels; those of few labels are not joined."""

    def joined(*shapes: tuple[int, int]) -> list[tuple[int, ...]]:
        cells = [[2] * labels + [0] * (40 - labels) for labels, _ in shapes]
        blocks = [Profiles.from_cells([cell], 40).blocks[0] for cell in cells]
        wide = [
            type(block)(np.repeat(block.counts, rows, 0), np.repeat(block.cells, rows), np.repeat(block.records, rows))
            for block, (_, rows) in zip(blocks, shapes, strict=True)
        ]
        return [block.counts.shape for block in join_blocks(Profiles(40, tuple(wide)))]

    assert joined((15, 2), (16, 3), (17, 1), (20, 2), (21, 4), (22, 1)) == [(2, 15), (3, 16), (7, 21), (1, 22)]
    assert joined((32, 4000), (32, 4192), (32, 1), (32, 8190), (32, 1)) == [(8192, 32), (8192, 32)]
    assert joined((32, 4000), (32, 4193)) == [(4000, 32), (4193, 32)]
    assert joined((32, 3000), (32, 3000), (32, 3000)) == [(6000, 32), (3000, 32)]
    assert joined((32, 9000), (40, 1), (40, 1)) == [(9000, 32), (2, 40)]


def test_noises_are_taken_64_at_a_time_and_endless_ones_together() -> None:
    noises = (*LaplaceNoise.at_scales(np.linspace(1, 2, 130)), *(InfiniteNoise(),) * 70, GaussianNoise(1.0))
    groups = AdditiveChannel(noises, 1.5).groups
    assert [len(group) for group in groups] == [64, 64, 2, 70, 1]
    assert [noise for group in groups for noise in group.noises] == list(noises)
    assert [group.endless for group in groups] == [False, False, False, True, False]
    assert {group.threshold for group in groups} == {1.5}
    one = AdditiveChannel(noises[:64])
    assert one.groups == (one,)


def test_only_tables_of_up_to_four_million_counts_are_made() -> None:
    """Where few counts of very many are asked for; a table of all of them is 32 megabytes."""
    wide = AdditiveChannel((LaplaceNoise(1e6),))
    wide._tables[1 << 22] = made = channel.SurvivalTable(np.ones((2, 1)), np.zeros((2, 1)))
    assert wide.at_any((1 << 22) - 1) is made
    far = wide.at_any(1 << 22)
    assert isinstance(far, channel.FarTable)
    assert far.end == 1 << 23
    assert list(wide._tables) == [1 << 22]


def test_counts_below_4096_are_looked_up_and_larger_ones_computed() -> None:
    """A handful of tables serves all: each is as long as the power of two above what is asked for."""
    noise = LaplaceNoise(3000.0)
    asked = AdditiveChannel((noise,))
    for largest, table in ((0, 1), (1, 2), (2, 4), (3, 4), (4, 8), (4095, 4096), (4096, None), (9_000, None)):
        asked._tables.clear()
        counts = np.array([0, largest])
        for found, theirs in (
            (asked.p_zero(counts), noise.p_zero(counts)),
            (asked.p_positive(counts), noise.p_positive(counts)),
        ):
            assert found[:, 0] == pytest.approx(theirs, rel=1e-13, abs=0)
        assert list(asked._tables) == ([] if table is None else [table])
        assert all(made.end == end for end, made in asked._tables.items())


def test_tables_end_where_nothing_vanishes_any_more() -> None:
    """At the first count less likely to vanish than 1e-18; of perturbed counts, at the first that never does."""
    noise = LaplaceNoise(2.0)
    first = next(count for count in range(1000) if float(noise.p_zero(count)) < 1e-18)
    assert AdditiveChannel((noise, LaplaceNoise(0.3), NoNoise())).reach == first
    assert AdditiveChannel((noise, NoNoise())).reaches.tolist() == [first, 1]
    assert AdditiveChannel((noise,)).up_to(10).end == 16
    assert AdditiveChannel((noise,)).up_to(10**6).end == first
    rounded = read_perturbation("suppress-below:10,round:5").noise
    assert AdditiveChannel((rounded,)).reach == 10
    assert AdditiveChannel((rounded, noise)).reaches.tolist() == [10, first]
    assert AdditiveChannel((InfiniteNoise(),)).reach > 10**18


@pytest.mark.parametrize("last", [1, 9, 60])
def test_tables_know_every_count(last: int) -> None:
    """Past the end a count is as good as certain to survive, and does not vanish; far ones are no different."""
    noise = LaplaceNoise(1.0)
    asked = AdditiveChannel((noise, GeometricNoise(2.0)))
    table, counts = asked.up_to(last), np.arange(2 * last + 70)
    far = channel.FarTable(asked, table.end)
    for column, each in enumerate(asked.noises):
        inside = counts <= table.end
        for made in (table, table[column : column + 1], far):
            at = 0 if made.vanish_at(counts).shape[1] == 1 else column
            theirs = np.where(inside, each.p_zero(counts), 0.0)
            assert made.vanish_at(counts)[:, at] == pytest.approx(theirs, rel=1e-13, abs=0)
            theirs = each.p_positive(np.minimum(counts, table.end))
            assert made.survive_at(counts)[:, at] == pytest.approx(theirs, rel=1e-13, abs=0)


@pytest.mark.parametrize("labels", [1, 2, 3, 4, 5, 15, 16, 17, 18, 33])
def test_one_label_alone_survives_however_many_there_are(labels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one up to sixteen labels, all at once beyond: each is the product straight from its definition."""
    many = [Watched(monkeypatch, channel, name) for name in ("_each_alone_of_many", "_exactly_one_of_many")]
    vanish = np.random.default_rng(labels).uniform(0.1, 0.9, (labels, 3))
    survive = np.random.default_rng(labels + 100).uniform(0.1, 0.9, (labels, 3))
    theirs = np.array([survive[k] * np.prod(np.delete(vanish, k, axis=0), axis=0) for k in range(labels)])
    for form in (list, np.asarray):
        assert np.array(channel.each_alone(form(vanish), form(survive))) == pytest.approx(theirs, rel=1e-12, abs=0)
        assert channel.exactly_one(form(vanish), form(survive)) == pytest.approx(theirs.sum(axis=0), rel=1e-12, abs=0)
    assert channel.each_alone(vanish.T, survive.T) == pytest.approx(theirs.T, rel=1e-12, abs=0)
    assert [len(watched.calls) for watched in many] == ([3, 2] if labels > 16 else [0, 0])


# expected risk


def test_cells_of_like_size_are_worked_on_together() -> None:
    """All of up to 63 records, then those within a factor of four: no sequence is over twice as long as its own."""
    sizes = np.array([4_000, 1, 64, 50, 63, 250, 1_000, 255, 1_100, 4_200])
    groups = [sizes[rows].tolist() for rows in expected._of_like_size(np.arange(len(sizes)), sizes)]
    assert groups == [[1, 50, 63], [64, 250], [1_000, 255], [4_000, 1_100], [4_200]]
    some = [rows.tolist() for rows in expected._of_like_size(np.array([0, 3, 6]), sizes)]
    assert some == [[3], [6], [0]]


def test_both_halves_are_joined_over_sequences_of_like_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than a quarter longer than a cell's own, so that a small cell is little work beside a large one."""
    widths: list[tuple[int, int, int]] = []

    def note(sequence: Floats, row: Integers, last: Integers, width: int) -> Floats:
        widths.append((len(row), width, sequence.shape[2]))
        return from_end(sequence, row, last, width)

    from_end = expected._from_end
    monkeypatch.setattr(expected, "_from_end", note)
    small = np.arange(40, 124, 2)
    counts = np.stack([250 - small, small], axis=1)
    sizes, several = counts.sum(axis=1), AdditiveChannel((LaplaceNoise(60.0), LaplaceNoise(90.0)))
    together = expected.multinomial_risk(counts, sizes, several)
    work = sum(cells * width for cells, width, _ in widths) / 3
    assert len(widths) / 3 <= 6
    alone, least = [], 0.0
    for row in range(len(counts)):
        widths.clear()
        alone.append(expected.multinomial_risk(counts[[row]], sizes[[row]], several))
        least += sum(width for _, width, _ in widths) / 3
    assert work <= 1.15 * least
    for form in range(2):
        assert together[form] == near(np.concatenate([each[form] for each in alone]))
    monkeypatch.setattr(expected, "NUMBERS_AT_ONCE", 1000)
    widths.clear()
    again = expected.multinomial_risk(counts, sizes, several)
    assert all(cells == 1 or cells * width * noises <= 1250 for cells, width, noises in widths)
    assert any(cells > 1 for cells, _, _ in widths)
    for form in range(2):
        assert again[form] == near(together[form])


# marginal risk


def test_means_are_summed_over_the_counts_that_matter_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first likely count to the last one, or to where every count survives; eight megabytes at a time."""
    watched = Watched(monkeypatch, marginal, "_poisson_rows")
    narrow, wide = AdditiveChannel((GeometricNoise(2.0),)), AdditiveChannel((GeometricNoise(500.0),))
    means = np.linspace(1.0, 3000.0, 3000)
    for asked in (narrow, wide):
        watched.calls.clear()
        q, s = marginal._summed_means(means, asked, 0)
        assert np.abs(q + s + np.exp(-means)[:, None] * asked.p_positive(np.array([0])) - 1.0).max() < 1e-12
        rows = 0
        for here, counts in watched.calls:
            lowest, highest = here[0, 0], here[-1, 0]
            assert counts[0] == max(0, math.floor(lowest - 9.5 * math.sqrt(lowest)))
            assert counts[-1] >= min(asked.reach, highest + 9 * math.sqrt(highest))
            assert counts[-1] <= max(counts[0], asked.reach)
            assert highest <= lowest + 9.5 * math.sqrt(lowest) + 21
            assert here.size * counts.size * 8 <= 8 * MEGABYTE
            rows += len(here)
        assert rows == len(means)
    assert len(watched.calls) < 40
    many = np.linspace(2000.0, 2100.0, 5000)
    watched.calls.clear()
    marginal._summed_means(many, wide, 0)
    assert all(here.size * counts.size * 8 <= 8 * MEGABYTE for here, counts in watched.calls)
    assert len(watched.calls) == math.ceil(5000 / (MEGABYTE // watched.calls[0][1].size))


# transforms


@pytest.mark.parametrize(("places", "fast"), [(58, False), (59, True), (1, False), (900, True)])
def test_totals_are_summed_wave_by_wave_where_a_transform_would_take_longer(
    places: int, fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one cell: places times frequencies against eight times length log2(length + 1), here 523. Both are the sum."""
    watched = Watched(monkeypatch, transforms, "_waves")
    generator = np.random.default_rng(places)
    length, kept = 16, 9
    shown = generator.normal(size=(2, 1, kept)) + 1j * generator.normal(size=(2, 1, kept))
    where = generator.integers(-5, 40, places)
    turns = np.exp(2j * np.pi * np.outer(np.arange(kept), where) / length)
    assert transforms._back(shown, where, length) == near((shown[:, 0] @ turns).real)
    assert len(watched.calls) == (0 if fast else 1)


def test_totals_of_many_cells_are_summed_each_at_its_own_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many they are; and few waves at a time."""
    generator = np.random.default_rng(9)
    length, kept, cells = 16, 9, 500
    shown = generator.normal(size=(2, cells, kept)) + 1j * generator.normal(size=(2, cells, kept))
    where = generator.integers(0, 16, cells)
    turns = np.exp(2j * np.pi * np.outer(where, np.arange(kept)) / length)
    watched = Watched(monkeypatch, transforms, "_waves")
    for at_once, calls in ((MEGABYTE, 1), (900, 5), (1, 500)):
        monkeypatch.setattr(transforms, "NUMBERS_AT_ONCE", at_once)
        watched.calls.clear()
        assert transforms._back(shown, where, length) == near((shown * turns).sum(axis=2).real)
        assert len(watched.calls) == calls


def test_waves_of_a_transform_are_listed_eight_megabytes_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million of them."""
    asked: list[tuple[int, int]] = []

    def note(places: Integers, frequencies: int, length: int) -> Any:
        asked.append((len(places), frequencies))
        return np.ones((len(places), frequencies), np.complex128)

    monkeypatch.setattr(transforms, "_waves", note)
    shown = np.ones((2, 1, 1024), np.complex128)
    transforms._back(shown, np.arange(2100), 1 << 20)
    assert asked == [(1024, 1024), (1024, 1024), (52, 1024)]


@pytest.mark.parametrize(("frequencies", "direct"), [(16, True), (17, False)])
def test_waves_are_listed_where_a_fast_transform_would_take_longer(frequencies: int, direct: bool) -> None:
    """Frequencies times places against twice length log2(length + 1): 2 * 64 * 6.02 = 771, against 48 places each."""
    terms = np.random.default_rng(1).random((2, 48))
    waves = transforms._Waves(48, 64, frequencies)
    assert (waves.waves is not None) == direct
    turns = np.exp(-2j * np.pi * np.outer(np.arange(48), np.arange(frequencies)) / 64)
    assert waves.transform(terms) == near(terms @ turns)


def test_at_the_edge_itself_waves_are_listed_and_totals_summed() -> None:
    """Of length 63 the logarithm is 6: 28 places times 27 frequencies are 2 * 63 * 6, 108 times 28 are 8 * 63 * 6."""
    assert transforms._Waves(28, 63, 27).waves is not None
    assert transforms._Waves(757, 63, 1).waves is None
    with pytest.MonkeyPatch.context() as patched:
        watched = Watched(patched, transforms, "_waves")
        transforms._back(np.ones((2, 1, 28), np.complex128), np.arange(108), 63)
        assert len(watched.calls) == 1
        transforms._back(np.ones((2, 1, 25), np.complex128), np.arange(121), 63)  # one more than 8 * 63 * 6
        assert len(watched.calls) == 1


def kinds(shares: Floats, size: int, scale: float = 40.0, concentration: float = math.inf) -> transforms._Kinds:
    table = AdditiveChannel((GeometricNoise(scale),)).up_to(4 * size)
    return transforms._Kinds.of(shares, concentration, size, 4 * size, table)


def test_probabilities_are_listed_eight_megabytes_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of labels whose counts spread alike, and all of them once."""
    made = kinds(np.linspace(0.001, 0.03, 300), 10_000)
    widths = made.last - made.first + 1
    whole = {int(place): law[row] for few, law in made._laws(np.arange(300)) for row, place in enumerate(few)}
    made.kept.clear()
    watched = Watched(monkeypatch, transforms, "consecutive_pmf")
    for at_once, wider in ((MEGABYTE, 0), (20_000, 0), (20_000, 2_000), (1, 0)):
        monkeypatch.setattr(transforms, "NUMBERS_AT_ONCE", at_once)
        watched.calls.clear()
        seen = []
        for few, law in made._laws(np.arange(300), wider):
            seen += few.tolist()
            assert len(few) == 1 or len(few) * max(law.shape[1], wider) <= at_once
            assert widths[few].max() == law.shape[1]
            assert widths[few].max() <= 1.5 * widths[few].min() + 64
            for row, place in enumerate(few.tolist()):
                assert np.allclose(law[row, : widths[place]], whole[place][: widths[place]], rtol=1e-10, atol=0)
                assert not law[row, widths[place] :].any()
        assert sorted(seen) == list(range(300))
        if at_once == 1:
            assert len(watched.calls) == 300
        elif wider:
            assert len(watched.calls) == 30
    monkeypatch.setattr(transforms, "NUMBERS_AT_ONCE", MEGABYTE)
    watched.calls.clear()
    assert len(list(made._laws(np.arange(300)))) <= 3


@pytest.mark.parametrize(("more", "kept"), [(0, True), (1, False)])
def test_probabilities_are_kept_up_to_64_megabytes(more: int, kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transforms._Kinds, "_laws", lambda self, places: iter([(np.array([0]), np.full((1, 3), 0.2))]))
    last = np.array([64 * MEGABYTE // 8 - 1 + more])
    table = AdditiveChannel((GeometricNoise(4.0),)).up_to(100)
    made = transforms._Kinds.within(np.ones(1), math.inf, 100, table, np.zeros(1, np.int64), last)
    assert bool(made.kept) == kept


def test_kept_probabilities_are_handed_out_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As few as the transforms of a step have room for."""
    made = kinds(np.linspace(0.01, 0.012, 90), 5_000)
    (_, law), *others = made._laws(np.arange(90))
    assert (len(law), others) == (90, [])
    monkeypatch.setattr(transforms, "NUMBERS_AT_ONCE", 4_000)
    for at_once in (0, 1_000, 5_000):
        parts = list(made._laws(np.arange(90), at_once))
        step = max(1, 4_000 // max(law.shape[1], at_once))
        assert [len(few) for few, _ in parts[:-1]] == [step] * (math.ceil(90 / step) - 1)
        assert np.concatenate([part for _, part in parts]).tolist() == law.tolist()
        assert sorted(np.concatenate([few for few, _ in parts]).tolist()) == list(range(90))


def between(means: Floats, concentration: float = math.inf, noise: Any = None) -> transforms._Kinds:
    """Labels of these mean counts."""
    size = round(float(means.sum()))
    table = AdditiveChannel((noise or GeometricNoise(40.0),)).up_to(4 * size)
    return transforms._Between.of(means / means.sum(), concentration, size, 4 * size, table)


def count_nodes(made: transforms._Kinds) -> int:
    return len(made.nodes.shares) if isinstance(made, transforms._Between) else len(made.shares)


def test_labels_within_two_and_a_half_deviations_share_28_nodes() -> None:
    """Twice the root of the mean counts deviations from 0 on: from 10 to 12.5 of them are means from 25 to 39.06."""
    assert count_nodes(between(np.linspace(25.1, 39.0, 300))) == 28
    assert count_nodes(between(np.append(24.9, np.linspace(25.1, 39.0, 300)))) == 1 + 28
    assert count_nodes(between(np.append(np.linspace(25.1, 39.0, 300), 39.1))) == 28 + 1
    assert count_nodes(between(np.linspace(25.1, 45.0, 300))) == 56
    assert count_nodes(between(np.linspace(25.1, 39.0, 57))) == 28
    assert count_nodes(between(np.linspace(25.1, 39.0, 56))) == 56


def test_a_prior_that_says_less_makes_deviations_wider() -> None:
    """Where as many records are known beforehand as there are in the cell, the variance is twice the mean."""
    means = np.linspace(2 * 25.1, 2 * 39.0, 300)
    size = float(round(float(means.sum())))
    assert count_nodes(between(means, size)) == 28
    assert count_nodes(between(means)) > 56


@pytest.mark.parametrize(("apart", "nodes"), [(0.9e-9, 60), (1.5e-9, 28)])
def test_labels_next_to_each_other_are_not_interpolated(apart: float, nodes: int) -> None:
    assert count_nodes(between(30.0 * np.linspace(1.0 - apart, 1.0, 60))) == nodes


def test_the_error_of_interpolated_labels_is_stated_larger() -> None:
    """1e-15, and the root of how many labels there are for each node times as much."""
    one_by_one, few = between(np.linspace(25.1, 39.0, 56)), between(np.linspace(25.1, 39.0, 252))
    assert one_by_one.rounding == pytest.approx(1e-15, rel=1e-12, abs=0)
    assert few.rounding == pytest.approx(3e-15, rel=1e-12, abs=0)


def test_interpolated_labels_that_never_vanish_are_known_as_such() -> None:
    """Some seven hundred records each, and no noise: the probability of none is e^-700, as good as 0."""
    made = between(np.linspace(690.0, 750.0, 60), noise=NoNoise())
    assert isinstance(made, transforms._Between)
    assert not made.masses.any()
    assert not made.alive.any()
    (few, b, *_), *_ = made.transforms(np.arange(60), 64, 3)
    assert (b == 1).all()
    assert len(few) == 60


def test_interpolated_labels_keep_digits_where_few_of_them_vanish() -> None:
    """The first of these labels vanishes with a probability of 5e-29, the last with one that is 3e7 times smaller."""
    made = between(np.linspace(265.0, 305.0, 90), noise=GeometricNoise(4.0))
    assert isinstance(made, transforms._Between)
    own = transforms._Kinds.within(made.shares, math.inf, made.size, made.table, made.first, made.last)
    assert own.masses[0] > 1e7 * own.masses[-1] > 0
    assert made.masses == pytest.approx(own.masses, rel=1e-11, abs=0)


@pytest.mark.parametrize("concentration", [60.0, 2e4, math.inf])
def test_interpolated_labels_have_the_transforms_of_their_own(
    concentration: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What each label is by itself, within the stated 1e-15 of the largest value; in steps of any number of labels."""
    means = np.concatenate([np.linspace(25.1, 38.0, 90), np.linspace(3.0, 5.0, 70), [400.0, 402.0]])
    made = between(means, concentration)
    assert isinstance(made, transforms._Between)
    own = transforms._Kinds.within(made.shares, concentration, made.size, made.table, made.first, made.last)
    assert made.masses == pytest.approx(own.masses, rel=1e-12, abs=0)
    assert made.alive.tolist() == own.alive.tolist()
    theirs: dict[int, Any] = {}
    for few, *found in own.transforms(np.arange(162), 2048, 40):
        theirs.update(zip(few.tolist(), np.stack(found, axis=1), strict=True))
    for at_once in (MEGABYTE, 200, 1):
        monkeypatch.setattr(transforms, "NUMBERS_AT_ONCE", at_once)
        seen = []
        for few, *found in made.transforms(np.arange(162), 2048, 40):
            seen += few.tolist()
            assert len(few) <= max(1, at_once // 40)
            for place, ours in zip(few.tolist(), np.stack(found, axis=1), strict=True):
                largest = np.abs(theirs[place]).max(axis=1, keepdims=True)
                assert np.abs(ours - theirs[place]).max() <= 1e-12 * largest.max()
                assert (np.abs(ours - theirs[place]) <= 1e-12 * largest).all()
        assert sorted(seen) == list(range(162))


@pytest.mark.parametrize("labels", [20, 400])
@pytest.mark.parametrize("length", [512, 4096])
def test_frequencies_that_cannot_matter_are_left_out(labels: int, length: int) -> None:
    """All labels but one bound the product: (D / (2 sin(w/2)))^(K-1) < e^-41.5 from some w on, to a factor 2^(1/4)."""
    made = kinds(np.full(1, 1 / labels), 50 * labels, scale=1e4)
    cells = transforms._Cells.of(made, np.array([[float(labels)]]))
    jump = float(made.jumps[0])
    angle = 2.0 * math.asin(min(1.0, 0.5 * jump * math.exp(41.5 / (labels - 1))))
    needed = angle * length / (2.0 * math.pi)
    found = cells.frequencies(length) - 1
    assert min(length // 2, math.ceil(needed)) <= found <= min(length // 2, math.ceil(2.0**0.25 * needed))


def test_labels_of_other_cells_ask_for_no_frequencies() -> None:
    """Of two kinds of labels a cell has the first alone: as many frequencies as if there were no other."""
    both = kinds(np.array([1 / 400, 1 / 4]), 20_000, scale=1e4)
    first = transforms._Cells.of(kinds(np.array([1 / 400]), 20_000, scale=1e4), np.array([[400.0]]))
    assert transforms._Cells.of(both, np.array([[400.0, 0.0]])).frequencies(4096) == first.frequencies(4096)


def is_small_at(angle: float, jumps: Sequence[float], times: Sequence[int], mass: Sequence[float]) -> bool:
    """Whether the labels that vanish, whichever one is shown, have a product of transforms below e^-41.5."""
    bounds = [min(0.0, math.log(jump / (2.0 * math.sin(angle / 2.0)))) for jump in jumps]
    hidden = [bound if each > 0 else 0.0 for bound, each in zip(bounds, mass, strict=True)]
    never = sum(number for number, each in zip(times, mass, strict=True) if each == 0)
    every = sum(number * bound for number, bound in zip(times, hidden, strict=True))
    shown = [bound for number, bound in zip(times, hidden, strict=True) if number]
    return every - (0.0 if never else min(shown)) < -41.5


@pytest.mark.parametrize(
    ("times", "mass"),
    [
        ([[400, 0]], [0.5, 0.5]),
        ([[5, 2]], [0.5, 0.5]),
        ([[5, 2]], [0.5, 0.0]),
        ([[5, 0], [9, 0], [7, 1]], [0.5, 0.5]),
    ],
)
def test_frequencies_end_where_the_bound_of_every_cell_is_small(times: list[list[int]], mass: list[float]) -> None:
    """At the first of 81 angles, a quarter of an octave apart up to pi, at which what is left out is e^-41.5."""
    made = kinds(np.array([0.1, 0.2]), 200)
    angles = [math.pi * 2.0 ** (-step / 4.0) for step in range(80, -1, -1)]
    for jump in np.geomspace(1e-12, 1.9, 40).tolist():
        jumps = [jump, 0.3]
        these = dataclasses.replace(made, jumps=np.array(jumps), masses=np.array(mass))
        cells = transforms._Cells.of(these, np.array(times, np.float64))
        small = [angle for angle in angles if all(is_small_at(angle, jumps, cell, mass) for cell in times)]
        for length in (4096, 4097, 99 << 20):
            last = math.ceil(small[0] * length / (2.0 * math.pi)) if small else length
            assert cells.frequencies(length) == min(length // 2, last) + 1


def test_cells_share_transforms_up_to_half_an_octave_longer_than_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen at least: and each cell's risk is what it is alone."""
    asked: list[int] = []

    def note(cells: Any, sizes: Integers, log_total: Floats, length: int) -> Any:
        own = cells.lengths(sizes, sizes)
        steps = {max(8, math.ceil(2.0 * math.log2(each))) for each in own.tolist()}
        assert len(steps) == 1
        assert length == fft.next_fast_len(math.ceil(2.0 ** (max(steps) / 2.0)))
        asked.append(length)
        return survivors(cells, sizes, log_total, length)

    survivors = transforms._Cells.survivors
    monkeypatch.setattr(transforms._Cells, "survivors", note)
    counts = np.array([[1, 1, 0], [1, 0, 0], [3, 2, 1], [30, 20, 10], [33, 20, 10], [400, 300, 200], [2, 2, 0]])
    sizes = counts.sum(axis=1)
    table = AdditiveChannel((GeometricNoise(0.1),)).up_to(2_000)
    wide = AdditiveChannel((GeometricNoise(40.0),)).up_to(2_000)
    for given in (table, wide):
        asked.clear()
        together = transforms.multinomial_risk_by_transform(counts, sizes, given)
        assert asked == sorted(set(asked))
        for row in range(len(sizes)):
            alone = transforms.multinomial_risk_by_transform(counts[[row]], sizes[[row]], given)
            assert [risk[row] for risk in together] == near([float(risk[0]) for risk in alone])


def test_every_frequency_counts_where_one_label_alone_vanishes() -> None:
    made = kinds(np.array([0.5]), 100)
    assert transforms._Cells.of(made, np.array([[2.0]])).frequencies(64) == 33
    assert transforms._Cells.of(made, np.array([[1.0]])).frequencies(65) == 33


# shrinkage risk


def test_noises_are_taken_few_at_a_time_where_convolutions_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """128 megabytes: labels times counts times noises."""
    asked: list[int] = []

    def note(labels: Any, laws: Any, table: Any, sizes: Integers, join: Any) -> tuple[Floats, Floats]:
        asked.append(table.vanish.shape[1])
        return np.zeros((len(sizes), asked[-1])), np.zeros((len(sizes), asked[-1]))

    monkeypatch.setattr(shrinkage, "_survivors", note)
    labels, several = Counter({1 / 32: 32}), AdditiveChannel(LaplaceNoise.at_scales(np.linspace(1e4, 2e4, 60)))
    shrinkage._term_by_term(2.0, labels, np.array([(1 << 14) - 1]), several)
    assert asked == [32, 28]
    asked.clear()
    ends = channel.SurvivalTable(np.zeros((1 << 14, 60)), np.zeros((1 << 14, 60)))
    monkeypatch.setattr(Survival, "up_to", lambda self, last: ends)  # noise that reaches so many counts and no more
    shrinkage._term_by_term(2.0, labels, np.array([100_000]), several)
    assert asked == [32, 28]
    asked.clear()
    monkeypatch.setattr(shrinkage, "NUMBERS_IN_MEMORY", 1)
    shrinkage._term_by_term(2.0, labels, np.array([100_000]), several)
    assert asked == [1] * 60


@pytest.mark.parametrize("size", [(1 << 18) - 1, 1 << 18])
def test_laws_of_large_cells_are_not_listed(size: int) -> None:
    """Up to 2 megabytes of probabilities are listed, and those of larger cells computed where they are asked for."""
    law = shrinkage._Law(0.3, 5.0, size)
    assert (law._every is None) == (size == 1 << 18)
    counts = np.array([0, 1, 77, size // 2, size])
    theirs = np.array([float(value) for value in shrinkage.count_pmf(counts, 0.3, 5.0, size)])
    assert law.at(counts) == pytest.approx(theirs, rel=1e-12, abs=0)
    down = np.arange(500, 400, -1)
    assert law.down_from(500, 100) == pytest.approx(shrinkage.count_pmf(down, 0.3, 5.0, size), rel=1e-12, abs=0)


@pytest.mark.parametrize("sizes", [[40], [1, 2, 3, 40], [38, 39, 40], list(range(1, 41)), [32, 5], [31, 5]])
def test_totals_of_few_sizes_are_summed_and_of_many_convolved(
    sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to sixteen times as many counts as sizes are convolved: both ways are the plain double sum."""
    watched = Watched(monkeypatch, shrinkage, "convolve")
    table = AdditiveChannel((LaplaceNoise(3.0), LaplaceNoise(9.0))).up_to(64)
    law = shrinkage._Law(0.4, 3.0, 40)
    others = np.random.default_rng(2).random((1, 30, 2))
    one, records = shrinkage._at_sizes(others, law, table, np.array(sizes))
    for row, size in enumerate(sizes):
        for noise in range(2):
            terms = [
                (m, others[0, size - m, noise] * float(law.at(np.array([m]))[0]) * table.survive[m, noise])
                for m in range(1, size + 1)
                if size - m < 30
            ]
            assert one[row, noise] == near(math.fsum(term for _, term in terms))
            assert records[row, noise] == near(math.fsum(m * term for m, term in terms))
    assert bool(watched.calls) == (max(sizes) + 1 <= 16 * len(sizes))


# labels


@pytest.mark.parametrize(
    ("counts", "rows"),
    [
        ([1] * 16, 16),
        ([1] * 17, 1),
        ([5] * 4 + [4] * 4 + [3] * 4 + [2] * 4 + [1] * 4, 5),
        ([5] * 4 + [4] * 4 + [3] * 4 + [2] * 4 + [1] * 3, 19),
    ],
)
def test_labels_are_taken_together_where_four_have_the_same_count(
    counts: list[int], rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On average, and of more than sixteen labels."""
    watched = Watched(monkeypatch, local, "exactly_one")
    asked = AdditiveChannel((LaplaceNoise(2.0), LaplaceNoise(30.0)))
    found = Local().average(Profiles.from_cells([counts], len(counts) + 1), asked, ("exact",))
    assert [len(vanish) for vanish, _ in watched.calls] == [rows]
    q, s = asked.p_zero(np.array(counts)), asked.p_positive(np.array(counts))
    theirs = sum(s[k] * np.prod(np.delete(q, k, axis=0), axis=0) for k in range(len(counts)))
    assert found["exact", "uniform"] == near(theirs * asked.q0)


@pytest.mark.parametrize("width", [1, 64, 65, 300])
def test_of_consecutive_counts_one_in_64_is_computed(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch, label_counts, "count_pmf")
    found = label_counts.consecutive_pmf(np.array([3, 9]), width, np.array([0.3, 0.1]), 2.0, 50)
    assert found.shape == (2, width)
    starts = [64 * run for run in range(math.ceil(width / 64))]
    assert watched.calls[0][0].tolist() == [[3 + start for start in starts], [9 + start for start in starts]]


@pytest.mark.parametrize(("means", "limit"), [([30, 200], 301), ([200, 30], 150), ([5000, 6000], 20_000), ([1, 2], 4)])
def test_sequences_of_one_label_end_where_it_never_vanishes(means: list[int], limit: int) -> None:
    """b(m) = q(m) P(m) up to the end of the table, a(m) = s(m) P(m) up to the last likely count or the limit."""
    noise = LaplaceNoise(3.0)
    asked = AdditiveChannel((noise,))
    table = asked.up_to(limit)
    first, last = first_count(means), np.minimum(last_count(means), limit - 1)
    vanish, survive, records = expected._label(np.array(means), limit, table)
    assert survive.shape == records.shape == (2, (last - first).max() + 1, 1)
    assert vanish.shape == (2, min(survive.shape[1], max(1, table.end - first.min() + 1)), 1)
    for row, mean in enumerate(means):
        counts = first[row] + np.arange(survive.shape[1])
        law = poisson_pmf(counts, float(mean))
        shown = noise.p_positive(np.minimum(counts, table.end)) * (counts > 0) * law
        assert survive[row, :, 0] == pytest.approx(shown, rel=1e-11, abs=0)
        assert records[row, :, 0] == pytest.approx(shown * counts, rel=1e-11, abs=0)
        hidden = np.where(counts <= table.end, noise.p_zero(counts), 0.0) * law
        assert vanish[row, :, 0] == pytest.approx(hidden[: vanish.shape[1]], rel=1e-11, abs=0)


def test_halves_are_joined_over_the_counts_that_matter_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first likely count of the smaller half to its last: 15 to 245, and 99 to 421."""
    watched = Watched(monkeypatch, expected, "_from_end")
    counts = np.array([[300, 250], [300, 120]])
    asked = AdditiveChannel((LaplaceNoise(60.0),))
    found = expected.multinomial_risk(counts, counts.sum(axis=1), asked)
    assert [width for _, _, _, width in watched.calls] == [231] * 3 + [323] * 3
    monkeypatch.setattr(expected, "NUMBERS_AT_ONCE", 1)
    for ours, theirs in zip(expected.multinomial_risk(counts, counts.sum(axis=1), asked), found, strict=True):
        assert ours == near(theirs)
    watched.calls.clear()
    alike = np.array([[300, 120], [301, 120], [302, 120]])
    expected.multinomial_risk(alike, alike.sum(axis=1), asked)
    assert [len(rows) for _, rows, _, _ in watched.calls] == [1] * 9


def test_the_larger_half_has_one_label_more() -> None:
    for labels, larger in ((2, 1), (3, 2), (4, 2), (7, 4)):
        assert [part.shape for part in expected.split_labels(np.ones((5, labels), dtype=np.int64))] == [
            (5, larger),
            (5, labels - larger),
        ]


@pytest.mark.parametrize("width", [1, 5])
def test_sequences_from_their_end_are_0_outside(width: int) -> None:
    sequence = np.arange(1.0, 1.0 + 2 * width).reshape(2, width, 1)
    rows, last = np.array([1, 0, 1]), np.array([0, 2, 6])
    found = expected._from_end(sequence, rows, last, 4)
    assert found.shape == (3, 4, 1)
    for cell, step in np.ndindex(3, 4):
        place = int(last[cell]) - step
        assert found[cell, step, 0] == near(sequence[rows[cell], place, 0] if 0 <= place < width else 0.0)


@pytest.mark.parametrize("labels", [1, 2, 32, 33])
def test_transforms_are_multiplied_from_33_labels_on(labels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    many, few = (Watched(monkeypatch, expected, name) for name in ("_many_labels", "_of_like_size"))
    counts = np.ones((2, labels), dtype=np.int64)
    expected.multinomial_risk(counts, counts.sum(axis=1), AdditiveChannel((LaplaceNoise(2.0),)))
    assert (len(many.calls), len(few.calls)) == (int(labels > 32), int(1 < labels <= 32))


def test_what_is_never_exceeded_where_larger_counts_may_vanish_more_often() -> None:
    """K q(0)^(K-1), or K where q need not fall."""
    noise = LaplaceNoise(2.0)
    asked = AdditiveChannel((noise, read_perturbation("suppress-below:10,round:5").noise))
    assert asked.at_most(5) == near([5 * float(noise.p_zero(0)) ** 4, 5.0])


# bounds of marginal risk


def test_what_marginal_risk_never_exceeds_as_written_out() -> None:
    """All labels but the one least likely to vanish, each with q(t/2) and Chernoff's bound for fewer than t/2."""
    noises = (LaplaceNoise(3.0), GeometricNoise(40.0), NoNoise())
    block = Profiles.from_cells([[9, 3, 1, 0], [400, 50, 50, 1]], 4).blocks
    for cell in block:
        found = marginal._log_most(cell, AdditiveChannel(noises), 37.0)
        for column, noise in enumerate(noises):
            logs = []
            for count in cell.counts[0].tolist():
                mean = 37.0 * count / float(cell.sizes[0])
                below = math.exp(-(1.0 - math.log(2.0)) * mean / 2.0)
                bound = (float(noise.p_zero(math.floor(mean / 2.0))) + below) / float(noise.p_zero(0))
                logs.append(math.log(min(bound, 1.0)))
            assert found[0, column] == near(sum(logs) - min(logs) + math.log(len(logs)))


def test_what_is_nothing_at_most_rates_may_be_something_at_the_lowest() -> None:
    """Sizes that vary much: twenty labels never vanish together in a large cell, and often do in a small one."""
    cell = Profiles.from_cells([[1] * 20], 20).blocks[0]
    noise = GeometricNoise(1.0)
    rates, weights = np.array([0.5, 5_000.0]), np.array([0.25, 0.75])
    counts = np.arange(40)
    law = poisson_pmf(counts, 0.5 / 20)
    none, one = float(law @ noise.p_zero(counts)), float(law[1:] @ noise.p_positive(counts[1:]))
    found = marginal._mixed(cell, AdditiveChannel((noise,)), rates, weights, False)
    assert float(found[0, 0]) == pytest.approx(0.25 * 20 * one * none**19, rel=1e-10, abs=0)


def test_tables_serve_the_largest_mean_beside_a_small_one() -> None:
    noise = GeometricNoise(500.0)
    means, counts = np.array([2000.0, 1.0]), np.arange(4000)
    vanish, survive = marginal._summed_means(means, AdditiveChannel((noise,)), 1)
    for place, mean in enumerate(means.tolist()):
        law = poisson_pmf(counts, mean)
        assert vanish[place, 0] == near(float(law @ noise.p_zero(counts)))
        assert survive[place, 0] == near(float(law @ noise.p_positive(counts + 1)))


def test_one_mean_at_least_is_summed_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch, marginal, "_poisson_rows")
    monkeypatch.setattr(marginal, "NUMBERS_AT_ONCE", 1)
    marginal._summed_means(np.array([5.0, 5.1, 5.2]), AdditiveChannel((LaplaceNoise(2.0),)), 0)
    assert [len(here) for here, _ in watched.calls] == [1, 1, 1]
