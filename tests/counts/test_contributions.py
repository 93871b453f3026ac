"""Which records of a person are kept, and how far a person moves the counts."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import product
from math import comb
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import cellrisk as cr
from cellrisk.counts.contributions import Draw, draw_securely, draw_seeded, keep_records
from cellrisk.counts.unit import Unit
from tests.counts.counter import refused
from tests.counts.postgres_server import Server, running_server
from tests.counts.spark_cluster import need_spark
from tests.near import near


@pytest.mark.parametrize(("most", "per_group"), [(1, 1), (3, 3), (3, 1), (4, 3), (5, 2)])
def test_the_sensitivities_are_those_of_the_worst_person(most: int, per_group: int) -> None:
    unit = Unit(most, per_group)
    people = [v for v in product(range(per_group + 1), repeat=most) if sum(v) <= most]
    assert unit.l1 == max(sum(v) for v in people)
    assert unit.l2 == near(max(np.linalg.norm(v) for v in people))


def make_entries(generator: np.random.Generator, people: int) -> tuple[np.ndarray, np.ndarray]:
    lengths = generator.integers(1, 6, people)
    return np.repeat(np.arange(people), lengths), generator.integers(1, 5, int(lengths.sum()))


DRAWS: dict[str, Draw] = {
    "secure": draw_securely,
    "seeded": draw_seeded(np.random.default_rng(5).integers(0, 2**63, 500).astype(np.uint64)),
}


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("unit", [Unit(1), Unit(3), Unit(3, 1), Unit(6, 2), Unit(100)])
def test_as_many_as_the_bounds_allow(unit: Unit, draw: str) -> None:
    person, count = make_entries(np.random.default_rng(1), 200)
    kept = keep_records(person, count, unit, DRAWS[draw])
    cut = np.minimum(count, unit.most_in_one)
    assert (kept <= cut).all()
    assert (kept >= 0).all()
    totals = np.bincount(person, cut)
    assert np.bincount(person, kept).tolist() == np.minimum(totals, unit.contributions).tolist()


@pytest.mark.parametrize("seeded", [False, True])
def test_every_choice_of_records_is_as_likely(seeded: bool) -> None:
    """Of 2 + 1 + 1 records two are drawn: each of the six pairs, told apart by their values."""
    people = 20_000
    person, count = np.repeat(np.arange(people), 3), np.tile([2, 1, 1], people)
    draw = draw_seeded(np.arange(people, dtype=np.uint64) * np.uint64(12_345)) if seeded else draw_securely
    kept = keep_records(person, count, Unit(2), draw).reshape(people, 3)
    ways = {(2, 0, 0): 1, (1, 1, 0): 2, (1, 0, 1): 2, (0, 1, 1): 1}
    seen = Counter(map(tuple, kept.tolist()))
    assert set(seen) == set(ways)
    assert (
        sum(
            (seen[kind] - people * number / comb(4, 2)) ** 2 / (people * number / comb(4, 2))
            for kind, number in ways.items()
        )
        < 30
    )  # chi-square with three degrees of freedom: above this once in a million


# Tables of people with several records, compared with a plain count of the records that are kept


LEVELS = {"area": ["n", "s", "e"], "ill": ["no", "yes", "?"]}
Record = tuple[str | None, str, int, str]


def draw_records(seed: int, people: int = 60) -> list[Record]:
    chance = random.Random(seed)
    rows: list[Record] = []
    for who in range(people):
        times = chance.choice([1, 1, 2, 3, 6])
        values = (
            (chance.choice("nse"), chance.randrange(20), chance.choice(["no", "no", "yes"])) for _ in range(times)
        )
        rows += [(f"p{who}", *value) for value in values]
    rows += [(None, "n", 3, "yes"), (None, "s", 3, "no")]
    chance.shuffle(rows)
    return rows


def frame_of(rows: list[Record]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["who", "area", "age", "ill"])


def tabulate(source: Any, **options: Any) -> cr.FrequencyTable:
    return cr.tabulate(source, ["area", "age"], "ill", bins={"age": 5}, levels=LEVELS, **options)


def cells_of(table: cr.FrequencyTable) -> Counter[tuple[str, ...]]:
    frame = table.to_frame()
    return Counter({tuple(map(str, row[:-1])): int(row[-1]) for row in frame.itertuples(index=False)})


def write_sources(folder: Path, rows: list[Record]) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return the records as sources of several kinds."""
    frame = frame_of(rows)
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_parquet(folder / "rows.parquet")
    with sqlite3.connect(folder / "rows.db") as connection:
        frame.to_sql("visits", connection, index=False)
    with duckdb.connect(str(folder / "rows.duckdb")) as connection:
        connection.execute("CREATE TABLE visits AS FROM frame")
    return {
        "pandas": (frame, {}),
        "polars": (pl.from_pandas(frame), {}),
        "arrow": (pl.from_pandas(frame).to_arrow(), {}),
        "csv": (folder / "rows.csv", {}),
        "parquet": (folder / "rows.parquet", {}),
        "sqlite": (f"sqlite:///{folder / 'rows.db'}", {"table": "visits"}),
        "duckdb": (folder / "rows.duckdb", {"table": "visits"}),
    }


@pytest.mark.parametrize("unit", [Unit(1), Unit(2), Unit(3, 1), Unit(50)])
def test_every_source_gives_the_same_table_within_the_bounds(tmp_path: Path, unit: Unit) -> None:
    rows = draw_records(1)
    options = {"person": "who", "contributions": unit.contributions, "per_group": unit.per_group}
    tables = {
        name: tabulate(source, **options, **more) for name, (source, more) in write_sources(tmp_path, rows).items()
    }
    per_person: dict[Any, Counter[Any]] = defaultdict(Counter)
    for number, (who, area, age, ill) in enumerate(rows):
        per_person[who or number][area, -(-age // 5), ill] += 1
    cut = [sum(min(times, unit.most_in_one) for times in own.values()) for own in per_person.values()]
    first = tables["pandas"]
    assert first.n_records == sum(min(total, unit.contributions) for total in cut)
    assert first.beyond_records == len(rows) - first.n_records
    assert first.anonymous_records == 2
    for table in tables.values():
        assert cells_of(table) == cells_of(first)
        if unit.contributions > 1:
            people = table.attribute().people
            assert people is not None
            assert people.n_people == len(per_person)
            assert people.records.tolist() == [*table.attribute().levels.totals]


def test_in_which_groups_people_are() -> None:
    """The pairs of a group's counts and a person's own are those of the records, of every person."""
    rows = draw_records(2)
    kinds = tabulate(frame_of(rows), person="who", contributions=50).attribute().people
    assert kinds is not None
    totals: dict[Any, Counter[str]] = defaultdict(Counter)
    own: dict[Any, dict[Any, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for number, (who, area, age, ill) in enumerate(rows):
        group = area, -(-age // 5)
        totals[group][ill] += 1
        own[who or number][group][ill] += 1

    def counts(of: Counter[str]) -> tuple[int, ...]:
        return tuple(of[level] for level in LEVELS["ill"])

    expected = Counter(
        tuple(sorted((counts(totals[group]), counts(mine)) for group, mine in groups.items()))
        for groups in own.values()
    )
    found: Counter[Any] = Counter()
    for kind, times in enumerate(kinds.people.tolist()):
        pairs = kinds.pair[kinds.offsets[kind] : kinds.offsets[kind + 1]]
        found[tuple(sorted((tuple(kinds.counts[p].tolist()), tuple(kinds.own[p].tolist())) for p in pairs))] += times
    assert found == expected


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    with running_server() as found:
        yield found


def copy_into(server: Server, rows: list[Record]) -> tuple[Any, dict[str, Any]]:
    """Return the records as a table of a PostgreSQL server."""
    with server.connect() as connection:
        connection.execute("DROP TABLE IF EXISTS visits")
        connection.execute("CREATE TABLE visits (who text, area text, age integer, ill text)")
        connection.execute("GRANT SELECT ON visits TO PUBLIC")
        with connection.cursor().copy("COPY visits FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
    return server.address(), {"table": "visits"}


def test_a_server_gives_the_table_of_a_frame(postgres: Server) -> None:
    rows = draw_records(1)
    source, more = copy_into(postgres, rows)
    for unit in ({"contributions": 2}, {"contributions": 3, "per_group": 1}):
        served = tabulate(source, person="who", **unit, **more)
        assert cells_of(served) == cells_of(tabulate(frame_of(rows), person="who", **unit))


@pytest.mark.slow
def test_spark_gives_the_table_of_a_frame(tmp_path: Path) -> None:
    need_spark()
    rows = draw_records(1)
    sources = write_sources(tmp_path, rows)
    for unit in ({"contributions": 2}, {"contributions": 3, "per_group": 1}):
        counted = tabulate(sources["parquet"][0], person="who", engine="spark", **unit)
        assert cells_of(counted) == cells_of(tabulate(frame_of(rows), person="who", **unit))


def test_one_record_of_different_people_is_the_table_without_people_on_a_server(postgres: Server) -> None:
    rows = [(f"p{number}", *row[1:]) for number, row in enumerate(draw_records(3))]
    check_single(*copy_into(postgres, rows))


@pytest.mark.parametrize(
    "engine",
    ["pandas", "polars", "arrow", "csv", "parquet", "sqlite", "duckdb", pytest.param("spark", marks=pytest.mark.slow)],
)
def test_one_record_of_different_people_is_the_table_without_people(tmp_path: Path, engine: str) -> None:
    rows = [(f"p{number}", *row[1:]) for number, row in enumerate(draw_records(3))]
    sources = write_sources(tmp_path, rows)
    if engine == "spark":
        need_spark()
    check_single(*(sources["parquet"][0], {"engine": "spark"}) if engine == "spark" else sources[engine])


def check_single(source: Any, more: dict[str, Any]) -> None:
    plain, people = tabulate(source, **more), tabulate(source, person="who", contributions=1, **more)
    one, other = (cr.assess(table, "geometric", epsilon=1.0).to_dict() for table in (plain, people))
    assert one["unit"] == {"kind": "record", "contributions": 1, "per_group": 1, "enforced": False}
    assert other["unit"] == {"kind": "person", "contributions": 1, "per_group": 1, "enforced": True}
    assert without_unit(one) == without_unit(other)


def without_unit(document: Any) -> Any:
    if isinstance(document, dict):
        return {name: without_unit(value) for name, value in document.items() if name != "unit"}
    return [without_unit(value) for value in document] if isinstance(document, list) else document


def test_what_is_kept_of_one_person_does_not_depend_on_others() -> None:
    rows = draw_records(4)
    options: dict[str, Any] = {"person": "who", "contributions": 2}
    whole = cells_of(tabulate(frame_of(rows), **options))
    for who in ("p0", "p7", "p30"):
        alone = cells_of(tabulate(frame_of([row for row in rows if row[0] == who]), **options))
        others = cells_of(tabulate(frame_of([row for row in rows if row[0] != who]), **options))
        assert alone + others == whole


def test_another_seed_keeps_other_records_and_the_same_seed_the_same() -> None:
    frame = frame_of(draw_records(5))
    tables = [cells_of(tabulate(frame, person="who", contributions=1, seed=seed)) for seed in (0, 0, 1)]
    assert tables[0] == tables[1]
    assert tables[0] != tables[2]


def test_several_attributes_and_rules_for_missing_values() -> None:
    rows = draw_records(6)
    frame = frame_of(rows).assign(job=[None if n % 7 == 0 else "a" if n % 2 else "b" for n in range(len(rows))])
    options: dict[str, Any] = {"person": "who", "contributions": 3, "missing": "drop"}
    table = cr.tabulate(frame, ["area"], ["ill", "job"], **options)
    kept = frame.dropna(subset=["job", "who"])
    assert (table.n_records, table.dropped_records) == (
        kept.groupby("who").size().clip(upper=3).sum(),
        len(frame) - len(kept),
    )
    people = [attribute.people for attribute in table.attributes]
    assert [kinds.n_people for kinds in people if kinds] == [kept["who"].nunique()] * 2
    for rule, code in (("error", "missing-values"), ("drop", "no-records")):
        with refused(code):
            cr.tabulate(
                frame.assign(who=None if rule == "drop" else frame["who"]),
                ["area"],
                "ill",
                person="who",
                contributions=1,
                missing=rule,
            )


def test_keys_of_more_than_63_bits(tmp_path: Path) -> None:
    generator = np.random.default_rng(7)
    wide = pd.DataFrame({f"q{n}": generator.integers(0, 2**39, 200) for n in range(3)})
    frame = pd.concat([wide, wide]).assign(who=[*range(200)] * 2, y=["a", "b"] * 200)
    table = cr.tabulate(frame, ["q0", "q1", "q2"], "y", person="who", contributions=2)
    kinds = table.attribute().people
    assert kinds is not None
    assert (table.n_records, table.n_cells, kinds.n_people) == (400, 200, 200)
    assert kinds.own.sum(axis=1).tolist() == [2] * len(kinds.own)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"person": "who"}, "no-contributions"),
        ({"per_group": 1}, "no-contributions"),
        ({"person": "who", "contributions": 0}, "range"),
        ({"person": "who", "contributions": 1.5}, "type"),
        ({"person": "who", "contributions": 2, "per_group": 3}, "per-group-range"),
        ({"person": "area", "contributions": 2}, "roles"),
        ({"person": "ill", "contributions": 2}, "roles"),
        ({"person": "nobody", "contributions": 2}, "no-column"),
        ({"person": "who", "contributions": 2, "count": "age"}, "person-of-counts"),
        ({"person": 3, "contributions": 2}, "names"),
    ],
)
def test_bad_input(options: dict[str, Any], code: str) -> None:
    with refused(code) as refusal:
        cr.tabulate(frame_of(draw_records(8)), ["area"], "ill", **options)
    assert "p1" not in str(refusal.value)
