"""Rules and files of perturbations: what each count becomes, and what is refused."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import cellrisk as cr
from cellrisk.errors import InvalidInput
from cellrisk.noise.perturbations import Perturbation, read_perturbation
from tests.near import near


def row_of(perturbation: Perturbation, count: int) -> dict[int, float]:
    values, chances = perturbation.row(count)
    return dict(zip(values.tolist(), chances.tolist(), strict=True))


@pytest.mark.parametrize("base", [2, 3, 5])
def test_random_rounding_keeps_the_mean(base: int) -> None:
    rounded = read_perturbation(f"random-rounding:{base}")
    for count in [*range(20), 1000, 123_457]:
        row = row_of(rounded, count)
        assert sum(value * chance for value, chance in row.items()) == near(count)
        assert all(value % base == 0 and abs(value - count) < base for value in row)
        low, rest = count - count % base, Fraction(count % base, base)
        assert row.get(low, 0.0) == near(float(1 - rest))


def test_suppression_and_rounding() -> None:
    both, ons = read_perturbation("suppress-below:10,round:5"), read_perturbation("cell-key")
    for count in range(1000):
        down = 5 * (count // 5)
        wanted = 0 if count < 10 else down if count - down <= 2 else down + 5
        assert list(row_of(both, count)) == list(row_of(ons, count)) == [wanted]
    assert [next(iter(row_of(read_perturbation("round:4"), count))) for count in range(8)] == [0, 0, 4, 4, 4, 4, 8, 8]
    assert [next(iter(row_of(read_perturbation("suppress-below:3"), count))) for count in (2, 3, 777)] == [0, 3, 777]


def test_what_vanishes() -> None:
    channel = read_perturbation("random-rounding:3").channel
    counts = np.array([0, 1, 2, 3, 4, 10**6])
    assert channel.p_zero(counts)[:, 0] == near([1, 2 / 3, 1 / 3, 0, 0, 0])
    assert channel.p_positive(counts)[:, 0] == near([0, 1 / 3, 2 / 3, 1, 1, 1])
    assert channel.zero_radius.tolist() == [3]


PLAIN = "count,released,probability\n0,0,1\n1,0,0.5\n1,2,0.5\n2,2,1\n"
PTABLE = "i;j;p;v;p_int_ub\n0;0;1.0000000;0;1\n1;0;0.4000000;-1;0.4\n1;2;0.6000000;1;1\n2;1;0.3;-1;0.3\n2;3;0.7;1;1\n"
KEYS = '"pcv","ckey","pvalue"\n1,0,-1\n1,1,1\n1,2,0\n1,3,0\n2,0,-3\n2,1,0\n2,2,0\n2,3,1\n'


def read(folder: Path, text: str | bytes) -> Perturbation:
    path = folder / "table.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_perturbation(path)


def test_files(tmp_path: Path) -> None:
    plain = read(tmp_path, PLAIN)
    assert (row_of(plain, 1), plain.last, plain.period) == ({0: near(0.5), 2: near(0.5)}, 2, 0)
    with pytest.raises(InvalidInput, match="ends before the largest count; got a last row for 2"):
        plain.check_reach(3)
    ptable = read(tmp_path, PTABLE)
    assert row_of(ptable, 50) == {49: near(0.3), 51: near(0.7)}  # the last row holds for all larger counts
    keys = read(tmp_path, KEYS)
    assert row_of(keys, 1) == {0: near(0.25), 1: near(0.5), 2: near(0.25)}
    assert row_of(keys, 2) == {0: near(0.25), 2: near(0.5), 3: near(0.25)}
    assert row_of(keys, 0) == {0: near(1.0)}
    assert "rows for counts from 0 to 2, and nothing is known of larger ones" in keys.describe()
    assert "rows for counts from 0 to 2, and larger ones like the last" in ptable.describe()
    for ends in (keys, read_perturbation(f"{tmp_path / 'table.csv'},suppress-below:3")):
        with pytest.raises(InvalidInput, match="ends before the largest count; got a last row for 2"):
            ends.row(3)
    assert read_perturbation(keys) is keys


@pytest.mark.parametrize(
    ("line", "row"), [("1,2,0.5\n1,5,0", {0: 0.5, 2: 0.5, 5: 0.0}), ("1,2,0.5000009", {0: 0.4999996, 2: 0.5000004})]
)
def test_files_with_zeros_and_few_digits(tmp_path: Path, line: str, row: dict[int, float]) -> None:
    assert row_of(read(tmp_path, PLAIN.replace("1,2,0.5", line)), 1) == pytest.approx(row, abs=1e-7)


def test_a_table_of_keys_goes_on_with_its_last_rows(tmp_path: Path) -> None:
    """Above 750, row (m - 1) % 250 + 501, as ONS's package has it."""
    lines = [f"{count},{key},{(count * 7 + key) % 3 - 1}" for count in range(1, 751) for key in range(2)]
    keys = read(tmp_path, "pcv,ckey,pvalue\n" + "\n".join(lines))
    for count in (751, 1000, 1001, 5432):
        base = (count - 1) % 250 + 501
        assert row_of(keys, count) == {value + count - base: chance for value, chance in row_of(keys, base).items()}


def test_what_a_file_shows_can_be_suppressed(tmp_path: Path) -> None:
    read(tmp_path, PTABLE)
    cut = read_perturbation(f"{tmp_path / 'table.csv'},suppress-below:3")
    assert row_of(cut, 2) == {0: near(0.3), 3: near(0.7)}
    assert row_of(cut, 1) == {0: near(1.0)}
    assert row_of(cut, 3) == {0: near(0.3), 4: near(0.7)}
    assert row_of(cut, 4) == {3: near(0.3), 5: near(0.7)}
    assert row_of(cut, 90) == {89: near(0.3), 91: near(0.7)}
    with pytest.raises(InvalidInput, match="whole number above 0"):
        read_perturbation(f"{tmp_path / 'table.csv'},suppress-below:x")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "has other columns"),
        ("a,b,c\n1,2,3\n", "has other columns"),
        ("count,count,released,probability\n", "has other columns"),
        (PLAIN.replace("1,2,0.5", "1,2,0.4"), r"must add up to 1; got 0.9 in the row of 1"),
        (PLAIN.replace("1,2,0.5", "1,2,0.5000011"), r"must add up to 1; got 1.0000011 in the row of 1"),
        (PLAIN.replace("1,0,0.5\n1,2,0.5", "1,0,-0.5\n1,2,1.5"), "numbers from 0 to 1; got the row of 1"),
        (PLAIN.replace("1,0,0.5\n1,2,0.5\n", ""), "a count has no row in the perturbation table; got 1"),
        (PLAIN.replace("1,2,0.5", "1,0,0.5"), "each published value once"),
        (PLAIN.replace("1,2,0.5", "1,-2,0.5"), "must not be negative"),
        (PLAIN.replace("1,2,0.5", "1,2"), "line 4"),
        (PLAIN.replace("1,2,0.5", "1,2.5,0.5"), "line 4"),
        (PLAIN.replace("1,2,0.5", "1,2,nan"), "line 4"),
        (PLAIN.replace("1,2,0.5", "1,2,secret"), "line 4"),
        (PLAIN.replace("1,2,0.5", "1,2,1e400"), "line 4"),
        (PLAIN.replace("2,2,1", "100001,2,1"), "must be from 0 on; allowed: up to 100,000"),
        (PLAIN.replace("2,2,1", "100000,2,1"), "a count has no row in the perturbation table; got 2"),
        (PLAIN.replace("0,0,1\n", ""), "a count has no row in the perturbation table; got 0"),
        (PLAIN.replace("1,2,0.5", "1.5,2,0.5"), "line 4"),
        (PLAIN.replace("1,2,0.5", "1,2,0.5,0"), "line 4"),
        (PLAIN.replace("1,2,0.5", "1,1000000001,0.5"), "line 4"),
        (PLAIN.replace("1,2,0.5", "-1000000001,2,0.5"), "line 4"),
        (PLAIN.replace("1,2,0.5", "1,2,1000000001"), "line 4"),
        (PLAIN.replace("1,2,0.5", "1,2,1000000000"), "must add up to 1; got 1e\\+09 in the row of 1"),
        (PLAIN.replace("1,2,0.5", "1,2,0.4999989"), "must add up to 1; got 0.9999989 in the row of 1"),
        (KEYS.replace(",0,", ",4,"), "from 0 on without a gap; got the row of 1, 4 keys"),
        (KEYS.replace("1,3,0\n", "1,4,0\n"), "from 0 on without a gap; got the row of 1, 4 keys"),
        ("count,released,probability\n", "has no rows"),
        (PTABLE.replace("p_int_ub", "type"), "for magnitudes"),
        (KEYS.replace("1,3,0\n", ""), "every count needs every key once"),
        (KEYS.replace("1,3,0\n", "1,2,0\n"), "every key once"),
        (KEYS.replace("1,3,0\n", "1,3,0.5\n"), "must be a whole number"),
        (b"\xff\xfe\x00count", "cannot be read as text"),
        ('count,released,probability\n"1,0,1\n', "cannot be read as text"),
        ("count,released,probability\n" + "1," * 200_000, "line 2"),
    ],
)
def test_hostile_files_are_refused(tmp_path: Path, text: str | bytes, told: str) -> None:
    with pytest.raises(InvalidInput, match=told) as refusal:
        read(tmp_path, text)
    assert "secret" not in str(refusal.value)


UNKNOWN = ("nothing.csv", "cell-key:5/2", "random-rounding:3,round:5", "")


@pytest.mark.parametrize(
    "given",
    [
        *("random-rounding:0", "random-rounding:x", "random-rounding:", "round:-5", "suppress-below:1e9"),
        *("round:99999999999999999999", *UNKNOWN),
        *(f"round:{'0' * 20}100001", "random-rounding:" + "9" * 5000, "suppress-below:\u0663"),
    ],
)
def test_unknown_rules_are_refused(given: str) -> None:
    said = "unknown perturbation" if given in UNKNOWN else "must be a whole number above 0"
    with pytest.raises(InvalidInput, match=said):
        read_perturbation(given)


def test_other_refusals(tmp_path: Path) -> None:
    for wrong, said in ((3, "got int"), (None, "got NoneType"), (tmp_path, "no such file")):
        with pytest.raises(InvalidInput, match=said):
            read_perturbation(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="a row for each count"):
        cr.Perturbation("none", ())
    with pytest.raises(InvalidInput, match="add up to 1"):
        cr.Perturbation("half", ((np.array([0]), np.array([0.5])),))
    for values, chances in (([], []), ([0, 1], [1.0]), ([1, 1], [0.5, 0.5])):
        with pytest.raises(InvalidInput, match="each published value once; got the row of 0"):
            cr.Perturbation("wrong", ((np.array(values, dtype=np.int64), np.array(chances)),))


def test_published_values_have_an_end() -> None:
    """Up to 10^9, beyond which no count is."""
    stays = (np.array([0]), np.ones(1))
    far = Perturbation("far", (stays, (np.array([10**9]), np.ones(1))))
    assert far.to_dict() == {"name": "far", "last": 1, "period": 0}
    for value in (10**9 + 1, -1):
        with pytest.raises(InvalidInput, match="nor beyond all counts"):
            Perturbation("farther", (stays, (np.array([value]), np.ones(1))))
        with pytest.raises(InvalidInput, match="nor beyond all counts"):
            Perturbation("some of it", (stays, (np.array([1, value]), np.full(2, 0.5))))


def test_where_the_numbers_of_rules_end() -> None:
    """Rows are held for each count up to the number of a rule: no more than 100,000."""
    assert read_perturbation("random-rounding:100000").last == 99_999
    assert read_perturbation("random-rounding:1").last == 0
    for rule in ("random-rounding:100001", "suppress-below:100001", "round:100001", "random-rounding:0"):
        with pytest.raises(InvalidInput) as refusal:
            read_perturbation(rule)
        assert str(refusal.value) == (
            f"the number of a rule must be a whole number above 0; got '{rule}'; allowed: up to 100,000; "
            "give it, as in random-rounding:3"
        )


def test_a_file_of_more_than_64_mb_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "large.csv"
    path.touch()
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: PLAIN)
    os.truncate(path, 64_000_000)
    assert read_perturbation(path).last == 2
    os.truncate(path, 64_000_001)
    with pytest.raises(InvalidInput, match=r"^the perturbation table is too large; allowed: up to 64 MB$"):
        read_perturbation(path)


def test_what_stands_between_the_columns(tmp_path: Path) -> None:
    """Semicolons where the header has more of them than commas; names of columns may hold either."""
    for header, between in (("count,released,probability,a;b;c;d", ","), ('count;released;probability;"a,b"', ";")):
        lines = [header, *(between.join((line, "x")) for line in PLAIN.replace(",", between).split()[1:]), ""]
        assert row_of(read(tmp_path, "\n".join(lines)), 1) == near({0: 0.5, 2: 0.5})


def test_headers_and_lines_as_programs_write_them(tmp_path: Path) -> None:
    """Capital letters, spaces, a byte order mark, other columns, empty lines, the ends of lines of Windows."""
    text = "\ufeff Probability ,note, COUNT ,Released\r\n1,x,0,0\r\n\r\n0.5,x,1,0\r\n0.5,x,1,2\r\n1,x,2,2\r\n"
    assert row_of(read(tmp_path, text), 1) == near({0: 0.5, 2: 0.5})
    with pytest.raises(InvalidInput, match="line 6"):  # as an editor counts them
        read(tmp_path, text.replace("1,x,2,2", "1,x,2,y"))


def test_a_file_that_ends_while_counts_still_vanish() -> None:
    """Every row up to the last counts, and past the last nothing is known to vanish."""
    chances: dict[int, dict[int, float]] = {0: {0: 1.0}, 1: {0: 0.25, 2: 0.75}, 2: {0: 0.5, 3: 0.5}}
    rows = tuple((np.array([*row]), np.array([*row.values()])) for row in chances.values())
    ends = Perturbation("ends", rows)
    assert ends.channel.p_zero(np.array([0, 1, 2, 3, 9]))[:, 0].tolist() == [1.0, 0.25, 0.5, 0.0, 0.0]
    assert ends.channel.p_pivotal(np.array([1, 2, 3]))[:, 0].tolist() == [0.75, -0.25, 0.5]
    with pytest.raises(InvalidInput) as refusal:
        ends.check_reach(2)
    assert str(refusal.value) == (
        "the last count of the perturbation table may still vanish, and nothing is known of larger ones; "
        "got the row of 2; add rows up to a count that is always shown"
    )
    goes_on = Perturbation("goes on", rows, 1)
    goes_on.check_reach(10**9)
    assert row_of(goes_on, 5) == {3: 0.5, 6: 0.5}
    assert goes_on.channel.p_zero(np.array([2, 3, 4]))[:, 0].tolist() == [0.5, 0.0, 0.0]
    shown = Perturbation("shown", (*rows, (np.array([1]), np.ones(1))))
    shown.check_reach(3)
    with pytest.raises(InvalidInput, match="ends before the largest count; got a last row for 3; add rows up to the"):
        shown.check_reach(4)


def test_rows_are_spelt_out_until_none_is_left_out(tmp_path: Path) -> None:
    read(tmp_path, PTABLE)
    cut = read_perturbation(f"{tmp_path / 'table.csv'},suppress-below:3")
    assert cut.to_dict() == {"name": "table.csv, below 3 left out", "last": 5, "period": 1}
    read(tmp_path, PLAIN)
    ends = read_perturbation(f"{tmp_path / 'table.csv'},suppress-below:2")
    assert ends.to_dict() == {"name": "table.csv, below 2 left out", "last": 2, "period": 0}
    assert [row_of(ends, count) for count in range(3)] == [{0: 1.0}, {0: near(0.5), 2: near(0.5)}, {2: 1.0}]
