"""The shipped Adult data, against what is known of it."""

from __future__ import annotations

from collections import Counter

from cellrisk.counts import datasets


def test_adult_marks_missing_values_as_null_and_trims_text() -> None:
    table = datasets.adult()
    missing = {name: table[name].null_count for name in table.column_names if table[name].null_count}
    assert missing == {"workclass": 1_836, "occupation": 1_843, "native-country": 583}
    texts = {value for name in table.column_names for value in table[name].unique().to_pylist() if type(value) is str}
    assert {"Bachelors", "Male"} <= texts
    assert "?" not in texts
    assert all(text == text.strip() for text in texts)


def test_adult_is_known_by_its_totals() -> None:
    """Figures of the data set's own documentation: 24.08% above 50K; ages 17 to 90."""
    table = datasets.adult()
    assert (table.num_rows, table.num_columns) == (32_561, 11)
    assert Counter(table["income"].to_pylist()) == {"<=50K": 24_720, ">50K": 7_841}
    assert Counter(table["sex"].to_pylist()) == {"Male": 21_790, "Female": 10_771}
    ages = table["age"].to_pylist()
    assert (min(ages), max(ages)) == (17, 90)


def test_adult_as_published_drops_rows_with_missing_values_then_keeps_one_country() -> None:
    assert datasets.adult().drop_null().num_rows == 30_162
    table = datasets.adult_as_published()
    assert table.num_rows == 27_504
    assert table["native-country"].unique().to_pylist() == ["United-States"]
