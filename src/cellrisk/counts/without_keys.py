"""Counting without keys, for tables with more cells than memory holds: only what risks need leaves DuckDB.

Each cell's counts of all levels are a vector; distinct vectors come out with the number of their cells. If an attribute
has very many levels, or its vectors are very many, the sorted lists of positive counts (profiles) come out instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cellrisk.counts.counting import (
    DENSE_LEVELS,
    CountedAttribute,
    Homogeneity,
    Packing,
    Tally,
    TooManyCells,
    check_records,
    source_changed,
)
from cellrisk.counts.engine import new_name
from cellrisk.counts.levels import Levels, check_several
from cellrisk.counts.profiles import MOST_NUMBERS
from cellrisk.counts.schema import Schema
from cellrisk.counts.validation import Numbering, Values


class _Engine:
    """The records with their packed keys k0, k1, ..., the places y0, y1, ... of their sensitive values, and w."""

    def __init__(self, values: Values, schema: Schema, packing: Packing) -> None:
        self.values, self.schema = values, schema
        self.connection = values.relation.connection
        self.sensitive = packing.numberings[packing.n_quasi :]
        keys = packing.sql(range(packing.n_quasi))
        chosen = [f"{sql} AS k{place}" for place, sql in enumerate(keys)]
        chosen += [f"{each.code} AS y{place}" for place, each in enumerate(self.sensitive)]
        source = f"FROM {values.relation.name} AS x {packing.joins}"
        outside = [f"{each.code} = {each.other}" for each in packing.numberings if each.others]
        lacking = [f"x.{each.column.role} IS NULL" for each in packing.numberings if each.missing]
        inside = f"NOT ({' OR '.join(outside)})" if outside else "true"
        kept = f"{inside} AND NOT ({' OR '.join(lacking)})" if lacking and schema.missing == "drop" else inside
        self.keys = ", ".join(f"k{place}" for place in range(len(keys)))
        self.records = f"(SELECT {', '.join(chosen)}, x.w AS w {source} WHERE {kept})"
        totals = [f"sum(w) FILTER ({condition})" for condition in ("true", inside, kept)]
        totals += [f"sum(w) FILTER ({inside} AND x.{each.column.role} IS NULL)" for each in packing.numberings]
        totals += [f"sum(w) FILTER ({condition})" for condition in outside]
        some = outside or lacking
        found = self.ask(f"SELECT {', '.join(totals)} {source}")[0] if some else [values.records] * 3
        numbers = [int(number or 0) for number in found]
        total, self.inside, self.kept = numbers[:3]
        if total != values.records:
            raise source_changed()
        names = [each.column.name for each in packing.numberings]
        self.missing = {name: number for name, number in zip(names, numbers[3:], strict=False) if number}
        roles = [each.column.role for each in packing.numberings if each.others]
        self.others = dict(zip(roles, numbers[3 + len(names) :], strict=False))

    def ask(self, query: str) -> list[Any]:
        return list(self.connection.execute(query).fetchall())

    def levels(self, place: int) -> tuple[Levels, list[int]]:
        """The levels of an attribute, and the place of its value that each is; None for those that do not occur."""
        numbering: Numbering = self.sensitive[place]
        found = list(range(numbering.size + numbering.missing))
        if self.kept < self.values.records or self.values.total != "count(*)":  # some may be left out, or never counted
            found = [number for (number,) in self.ask(f"SELECT DISTINCT y{place} FROM {self.records}")]
        observed = sorted(number for number in found if number is not None and number < numbering.size)
        levels = numbering.levels(observed, self.missing.get(numbering.column.name, 0) * (numbering.size in found))
        check_several(numbering.column.name, levels)
        places = [-1] * len(levels.labels)
        for number in observed:
            places[levels.places[numbering.values[number]]] = number
        if levels.missing:
            places[-1] = numbering.size
        return levels, places


def count_without_keys(values: Values, schema: Schema, found: TooManyCells) -> Tally:
    """Counts the records of a validated source in their cells, which stay in DuckDB."""
    engine = _Engine(values, schema, found.packing)
    check_records(values, schema, engine.missing, engine.kept, engine.others)
    listed = [engine.levels(place) for place in range(len(engine.sensitive))]
    dense = count_vectors(engine, listed) if sum(len(places) for _, places in listed) <= DENSE_LEVELS else {}
    attributes = tuple(
        dense.get(place) or count_lists(engine, place, levels, places) for place, (levels, places) in enumerate(listed)
    )
    if any(each.profiles.n_records != engine.kept for each in attributes):
        raise source_changed()
    return Tally(
        attributes,
        find_homogeneity(engine, attributes),
        engine.missing,
        engine.kept,
        values.records - engine.inside,
        engine.inside - engine.kept,
        combinations=found.combinations,
    )


def count_vectors(engine: _Engine, found: list[tuple[Levels, list[int]]]) -> dict[int, CountedAttribute]:
    """The attributes whose distinct vectors of counts are few enough to be brought here."""
    plain = engine.values.total == "count(*)"
    columns = [
        f"{'count(*)' if plain else 'coalesce(sum(w)'} FILTER (y{place} = {number}){'' if plain else ', 0)'}::BIGINT"
        f" AS c{place}_{level}"
        for place, (_, places) in enumerate(found)
        for level, number in enumerate(places)
    ]
    name = new_name("vectors")
    engine.connection.execute(
        f"CREATE TEMP TABLE {name} AS SELECT *, count(*) AS m FROM "
        f"(SELECT {', '.join(columns)} FROM {engine.records} GROUP BY {engine.keys}) GROUP BY ALL"
    )
    counted = {}
    for place, (levels, places) in enumerate(found):
        names, most = [f"c{place}_{level}" for level in range(len(places))], MOST_NUMBERS // len(places)
        query = f"SELECT {', '.join(names)}, sum(m)::BIGINT AS m FROM {name} GROUP BY ALL LIMIT {most + 1}"
        arrays = engine.connection.sql(query).fetchnumpy()
        if len(arrays["m"]) <= most:
            counts = np.stack([arrays[column] for column in names], axis=1)
            counted[place] = CountedAttribute.from_vectors(levels, counts, arrays["m"])
    engine.connection.execute(f"DROP TABLE {name}")
    return counted


def count_lists(engine: _Engine, place: int, levels: Levels, places: list[int]) -> CountedAttribute:
    """An attribute with many levels or vectors, from one row for each cell and level present in it."""
    name = new_name("pairs")
    engine.connection.execute(
        f"CREATE TEMP TABLE {name} AS SELECT {engine.keys}, y{place} AS y, sum(w)::BIGINT AS c FROM {engine.records} "
        "GROUP BY ALL HAVING sum(w) > 0"
    )
    profiles = engine.connection.sql(
        f"SELECT counts, count(*) AS m FROM (SELECT list(c ORDER BY c) AS counts FROM {name} GROUP BY {engine.keys}) "
        "GROUP BY ALL"
    ).to_arrow_table()
    spread = engine.connection.sql(
        f"SELECT y, c, count(*) AS cells, sum(size)::DOUBLE AS sizes FROM "
        f"(SELECT y, c, sum(c) OVER (PARTITION BY {engine.keys}) AS size FROM {name}) GROUP BY ALL"
    ).fetchnumpy()
    engine.connection.execute(f"DROP TABLE {name}")
    number = {old: new for new, old in enumerate(places)}
    level = np.array([number[old] for old in spread["y"].tolist()], np.int64)
    return CountedAttribute.from_spread(levels, profiles, level, spread["c"], spread["cells"], spread["sizes"])


def find_homogeneity(engine: _Engine, attributes: tuple[CountedAttribute, ...]) -> Homogeneity:
    """Cells by how many attributes take one value in them."""
    cells = attributes[0].profiles.n_cells
    if len(attributes) == 1:
        single = attributes[0].profiles.n_homogeneous
        return Homogeneity(single, 0, cells - single)
    flags = ", ".join(f"min(y{place}) = max(y{place}) AS h{place}" for place in range(len(attributes)))
    every, some = (word.join(f"h{place}" for place in range(len(attributes))) for word in (" AND ", " OR "))
    complete, none = engine.ask(
        f"SELECT count(*) FILTER ({every}), count(*) FILTER (NOT ({some})) FROM "
        f"(SELECT {flags} FROM {engine.records} WHERE w > 0 GROUP BY {engine.keys})"
    )[0]
    return Homogeneity(complete, cells - complete - none, none)
