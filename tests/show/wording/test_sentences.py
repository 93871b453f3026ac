"""Every sentence that is printed on ten random tables, with its numbers computed again; an unknown sentence fails."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from tests.near import near

CONSTANT = {
    "Internal: computed from the raw data, not protected.",
    "Do not publish.",
    "One record per person is assumed.",
    "Several categories together may be certain where none of them is alone.",
    "An epsilon chosen from these data reveals a little about them.",
    "Choose it on public or earlier data.",
    "It keeps every limit.",
    "The informed attacker learns nobody's 'y' beyond the overall shares.",
    "Mean error: as a share of the true count.",
    "Bias: what is published less the true count, on average.",
    "People revealed because of their own record, and the largest that any attack on all releases so far reveals:",
    "No change that was tried would lower that number.",
}
UNBOUND = ("To choose an epsilon, set", "For information, ", "Even epsilon")
"""Sentences of a choice that no limit binds; tests/decide has their numbers."""
NUMBER, SHARE = r"(under 1|fewer than 1|[\d,]+)", r"(under 0\.1%|over 99\.9%|[\d.]+%)"


@dataclass
class Case:
    """A random table, and what is known of it by other means."""

    frame: pd.DataFrame
    epsilon: float
    document: dict[str, Any]
    """What the result that printed the sentence gives as JSON."""
    assessed: dict[str, Any]
    """What `assess` gives as JSON at the same epsilon."""

    @property
    def people(self) -> int:
        return len(self.frame)

    @property
    def groups(self) -> int:
        return self.frame.groupby(["a", "b"]).ngroups

    def attack(self, name: str) -> dict[str, Any]:
        return next(row for row in self.assessed["attackers"] if row["attack"] == name and "union" not in row)

    @property
    def own(self) -> float:
        """People revealed because of their own record, by the strongest attack."""
        return max(row["own"] for row in self.assessed["attackers"] if row["attack"] != "any" and "union" not in row)


def same_people(text: str, number: float) -> bool:
    if text in ("under 1", "fewer than 1"):
        return 0 < number < 0.5
    return abs(float(text.replace(",", "")) - number) <= 0.5 + 1e-9


def same_share(text: str, number: float, digits: int = 1) -> bool:
    if text.startswith("under"):
        return 0 < number < 0.0005
    if text.startswith("over"):
        return 0.9995 <= number < 1
    return abs(float(text.rstrip("%")) - 100 * number) <= 0.5 * 10.0**-digits + 1e-9


def is_within(case: Case, noise: str, epsilon: str, within: str, cases: str) -> bool:
    """P(|e| <= N) of the rounded noise: the smallest N with at least 95%."""
    e, n = float(epsilon), int(within.replace(",", ""))

    def inside(width: int) -> float:
        a = math.exp(-e)
        return 1 - 2 * a ** (width + 1) / (1 + a) if noise == "Geometric" else 1 - math.exp(-e * (width + 0.5))

    return inside(n) >= 0.95 > (inside(n - 1) if n else 0) and int(cases) == math.floor(100 * inside(n) + 1e-9)


def is_bound(gain: str, epsilons: list[float]) -> bool:
    """The total variation distance of one record in several geometric releases, by enumeration of their signs."""
    distance = 0.0
    for signs in np.ndindex(*(2,) * len(epsilons)):
        p = math.prod(1 / (1 + math.exp(-e if s else e)) for s, e in zip(signs, epsilons, strict=True))
        q = math.prod(1 / (1 + math.exp(e if s else -e)) for s, e in zip(signs, epsilons, strict=True))
        distance += max(p - q, 0.0)
    return abs(float(gain) - 100 * distance) <= 0.1 and float(gain) >= 100 * distance - 1e-9


def largest_share(case: Case) -> float:
    """The largest share of a category, those of fewer than five people together, over the attacks."""
    largest = 0.0
    for row in case.assessed["attackers"]:
        if row["attack"] == "any":
            continue
        parts = row["by_category"].values()
        large = [part["own"] / part["people"] for part in parts if part["people"] >= 5]
        few = [part for part in parts if part["people"] < 5]
        rest = sum(part["people"] for part in few)
        largest = max(largest, *large, sum(part["own"] for part in few) / rest if rest else 0.0)
    return largest


def is_revealed(case: Case, people: str, everybody: str, share: str) -> bool:
    return int(everybody.replace(",", "")) == case.people and (
        same_people(people, case.own) and same_share(share, case.own / case.people)
    )


def is_learnt(case: Case, people: str, parts: str, without: str, less_sure: str | None) -> bool:
    row, table = case.attack("informed"), case.document
    shown = dict(part.rsplit(" ", 1) for part in parts.split(", ")) if parts else {}
    by = {name: part["learnt"] / part["people"] for name, part in row["by_category"].items() if part["people"]}
    best = sorted((share for share in by.values() if share >= 0.0005), reverse=True)[:2]
    assert sorted((by[name] for name in shown), reverse=True) == near(best)
    digits = all(same_share(share, by[name], 0 if 0.005 <= by[name] < 0.995 else 1) for name, share in shown.items())
    return digits and same_people(people, row["learnt"]) and table is not None and int(without.replace(",", "")) >= 0


def is_most_at_risk(case: Case, text: str) -> bool:
    levels = case.document["by_level"]
    shares = sorted((level["own"] / level["records"] for level in levels if level["records"] >= 5), reverse=True)
    for part in text.split("; "):
        match = re.fullmatch(rf"'(\w)' (.+): {SHARE} of ([\d,]+)", part)
        assert match is not None, part
        column, label, share, people = match.groups()
        if label.startswith("values of fewer"):
            few = [level for level in levels if level["quasi_identifier"] == column and level["records"] < 5]
            own, number = sum(level["own"] for level in few), sum(level["records"] for level in few)
        else:
            number = int((case.frame[column].astype(str) == label).sum())
            [own] = [level["own"] for level in levels if (level["quasi_identifier"], level["label"]) == (column, label)]
            assert own / number >= shares[min(2, len(shares) - 1)] - 1e-12
        if not (same_share(share, own / number) and number == int(people)):
            return False
    return True


def released_counts(case: Case) -> pd.DataFrame:
    shown = case.document["released"]
    return shown[shown["n"] > 0]


def exposed(case: Case) -> pd.Series:
    """Whether the group of each person shows their value alone, by pandas."""
    alone = released_counts(case).groupby(["a", "b"]).filter(lambda rows: len(rows) == 1)
    return case.frame.merge(alone, how="left", on=["a", "b", "y"])["n"]


def hidden(case: Case) -> Any:
    """The groups of the original that the release does not show."""
    shown = released_counts(case).groupby(["a", "b"]).size().index
    return case.frame[~pd.MultiIndex.from_frame(case.frame[["a", "b"]]).isin(shown)].groupby(["a", "b"])


Check = Callable[..., bool]
PATTERNS: dict[str, Check] = {
    r"'y' by a, b: ([\d,]+) people in ([\d,]+) groups?(?:; geometric noise)?": lambda case, people, groups: (
        (int(people), int(groups)) == (case.people, case.groups)
    ),
    r"(Geometric|Laplace) noise, epsilon ([\d.]+): a published count is within ([\d,]+) of the true one in (\d+) of "
    r"100 cases\.": is_within,
    rf"At epsilon ([\d.]+), the 'y' of (?:at least )?{NUMBER} of ([\d,]+) people \({SHARE}\) is revealed because of "
    r"their own record\.": lambda case, epsilon, *found: float(epsilon) != case.epsilon or is_revealed(case, *found),
    r"(?:Nobody|(\d+) (?:people|person)) (?:is|are) named more than 10 points more often because of their own record "
    r"\(homogeneity, largest count\)\.": lambda case, people: int(people or 0) == case.assessed["people_above"]["0.1"],
    rf"The informed attacker learns the 'y' of {NUMBER} (?:people|person) \((.*)\), {NUMBER} from others' records alone"
    r"(?: \(at 80%: ([\d,]+)\))?\.": is_learnt,
    r"Recommended: epsilon ([\d.]+) with geometric noise, the largest allowed(, rounded down)?\.": (
        lambda case, epsilon, rounded: (
            float(epsilon) == case.document["epsilon"] <= case.document["exact_epsilon"] <= 1.1 * float(epsilon)
            and (rounded is not None) == (case.document["epsilon"] < case.document["exact_epsilon"])
        )
    ),
    r"Every epsilon from 0\.001 up to it keeps at most ([\d.]+)% of any category revealed because of their own "
    r"record\.": lambda case, limit: largest_share(case) <= float(limit) / 100 * (1 + 1e-9),
    r"No recommendation for geometric noise: no limit binds\.": lambda case: case.document["epsilon"] is None,
    rf"At epsilon ([\d.]+), the strongest attack reveals {NUMBER} of ([\d,]+) people \({SHARE}\) because of their own "
    r"record\.": lambda case, epsilon, *found: float(epsilon) == case.epsilon and is_revealed(case, *found),
    r"Most at risk because of their own record: (.*)\.": is_most_at_risk,
    r"'y': ([\d,]+) people in ([\d,]+) groups?; geometric noise, scale ([\d.]+)": lambda case, people, groups, scale: (
        (int(people), int(groups)) == (case.people, case.groups) and abs(float(scale) - 1 / case.epsilon) < 1e-3
    ),
    rf"The release reveals the 'y' of {NUMBER} of ([\d,]+) people \(([\d.]+)%\): their group shows their value "
    r"alone\.": (
        lambda case, people, everybody, share: (
            (int(people), int(everybody)) == (exposed(case).notna().sum(), case.people)
            and same_share(share, exposed(case).notna().mean())
        )
    ),
    r"(None|[\d,]+) of them (?:is|are) shown alone as a count of 1(, and would not be without their own record)?\.": (
        lambda case, people, safe: (
            (0 if people == "None" else int(people)) == (exposed(case) == 1).sum()
            and (safe is None) == (people == "None")
        )
    ),
    r"An informed attacker could infer the 'y' of ([\d,]+) (?:people|person) and be at least 95% sure\.": (
        lambda case, people: same_people(
            people, next(row["revealed"] for row in case.document["attackers"] if row["attack"] == "informed")
        )
    ),
    r"'y': ([\d,]+) people in (\d+) tables": lambda case, people, tables: (int(people), tables) == (case.people, "2"),
    rf"By elimination, the 2 tables together reveal the 'y' of {NUMBER} of ([\d,]+) people \({SHARE}\) because of "
    r"their own record\.": lambda case, people, everybody, share: (
        same_people(people, case.document["rules"][0]["caused"])
        and same_share(share, case.document["rules"][0]["caused"] / case.people)
        and int(everybody) == case.people
    ),
    rf"It names {SHARE} of the people correctly; with nothing but noise, {SHARE}\.": lambda case, right, chance: (
        same_share(right, case.document["rules"][0]["right"] / case.people)
        and same_share(chance, case.document["rules"][0]["chance"] / case.people)
    ),
    r"The set costs epsilon ([\d.]+) \(pure DP, basic composition\)\.": lambda case, epsilon: (
        abs(float(epsilon) - 2 * case.epsilon) < 1e-5
    ),
    r"Having a person's record in (this release|these releases), instead of leaving it out, raises anybody's chance of "
    r"naming that person's value by at most ([\d.]+) percentage points\.": lambda case, which, gain: is_bound(
        gain, [case.epsilon] * (1 if which == "this release" else case.document.get("releases_made", 2))
    ),
    r"Worst case for one record: an attacker who already knows every other record, and finds two values equally "
    r"likely, is right at most ([\d.]+)% of the time \(coin toss: 50%\)\.": lambda case, most: (
        case.document.get("releases_made", 1) != 1
        or (abs(float(most) - 100 / (1 + math.exp(-case.epsilon))) <= 0.1 and float(most) >= 50)
    ),
    r"In ([\d,]+) simulated releases at epsilon ([\d.]+), the homogeneity attack reveals the 'y' of (?:about )?"
    rf"{NUMBER} of ([\d,]+) people \([\d.]+%\) on average\.": lambda case, releases, epsilon, people, everybody: (
        (int(releases), int(everybody), float(epsilon)) == (40, case.people, case.epsilon)
        and same_people(people, case.document["attackers"][0]["revealed"])
        and abs(case.attack("homogeneity")["revealed"] - case.document["attackers"][0]["revealed"])
        <= 6 * case.document["attackers"][0]["revealed_error"] + 0.5
    ),
    r"Groups of the original that are not shown: (\d+), with (\d+) of its records\.": lambda case, groups, people: (
        (int(groups), int(people)) == (hidden(case).ngroups, hidden(case).size().sum())
    ),
    r"In 95% of releases it is ([\d,]+) to ([\d,]+)\.": lambda case, low, high: (
        int(low) <= case.document["attackers"][0]["revealed"] <= int(high)
    ),
    r"At epsilon ([\d.]+), noise has standard deviation ([\d.]+); averaging 3 releases leaves ([\d.]+)\.": (
        lambda case, epsilon, one, left: (
            float(one)
            == pytest.approx(math.sqrt(2 * math.exp(-case.epsilon)) / (1 - math.exp(-case.epsilon)), rel=1e-3, abs=0)
            and float(left) == pytest.approx(float(one) / math.sqrt(3), rel=2e-3, abs=0)
        )
    ),
    r"At epsilon ([\d.]+), a (\d)-way marginal differs from the true one by a TVD of ([\d.]+) on average: the share of "
    r"records to move\.": lambda case, epsilon, way, tvd: (
        float(tvd)
        == pytest.approx(
            next(row["mean"] for row in case.document["settings"][0]["ways"] if row["way"] == int(way)), rel=0.06, abs=0
        )
    ),
    r"After ([\d,]+) releases? the cumulative loss is epsilon ([\d.]+)\.": lambda case, number, epsilon: (
        float(epsilon) == pytest.approx(int(number) * case.epsilon, rel=1e-5, abs=0)
    ),
    rf"The homogeneity attack reveals 'y' of {NUMBER} of ([\d,]+) people \({SHARE}\) because of their own record\.": (
        lambda case, people, everybody, share: (
            same_people(people, case.document["caused"])
            and same_share(share, case.document["caused"] / case.people)
            and int(everybody) == case.people
        )
    ),
    r"random-rounding:3: a published count is within (2) of the true one in at least 95 of 100 cases\.": (
        lambda case, within: case.document["accuracy"]["within"] == int(within)  # 1 becomes 3 once in three times
    ),
}


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text; tables and commands, in columns apart, are no sentences."""
    lines = [line for line in text.splitlines() if line.strip() and not re.search(r"\S {2,}\S", line)]
    joined: list[str] = []
    for line in lines:
        open_sentence = joined and not re.search(r"[.:?!]$|groups?$|tables$|noise$|scale [\d.]+$", joined[-1])
        if open_sentence:
            joined[-1] += f" {line}"
        else:
            joined.append(line)
    for line in joined:
        yield from re.split(r"(?<=[.?!])\s+(?=[A-Z0-9'])", line)


def check(text: str, case: Case) -> int:
    """Check every sentence; return how many had numbers."""
    numbered = 0
    for sentence in sentences(text):
        if sentence in CONSTANT or sentence.startswith(
            ("To choose an epsilon, set", "For information, ", "Even epsilon")
        ):
            continue
        for pattern, holds in PATTERNS.items():
            match = re.fullmatch(pattern, sentence)
            if match is not None:
                assert holds(case, *match.groups()), sentence
                numbered += 1
                break
        else:
            raise AssertionError(f"no check for: {sentence}")
        listed = sentence.startswith(("Most at risk", "'y'"))
        assert listed or len(re.findall(r"(?<![\w'])\d[\d,.]*", sentence.replace("of 100 cases", ""))) <= 5, sentence
    return numbered


def make_frame(seed: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    size, kinds = int(random.integers(12, 260)), int(random.integers(2, 5))
    shares = random.dirichlet(np.ones(kinds))
    columns = {name: random.choice([f"{name}{k}" for k in range(int(random.integers(2, 6)))], size) for name in "ab"}
    frame = pd.DataFrame({**columns, "y": random.choice(list("stuv")[:kinds], size, p=shares)})
    frame.loc[:1, "y"] = ["s", "t"]
    return frame


@pytest.mark.parametrize("seed", range(10))
def test_every_sentence_on_a_random_table(seed: int) -> None:
    frame = make_frame(seed)
    epsilon = round(float(np.random.default_rng(seed + 50).uniform(0.3, 2.5)), 2)
    table = cr.tabulate(frame, ["a", "b"], "y")
    assessed = cr.assess(table, epsilon=epsilon)
    known = assessed.to_dict()

    def case(document: dict[str, Any], at: dict[str, Any] | None = None, eps: float = epsilon) -> Case:
        return Case(frame, eps, document, at or known)

    numbered = check(str(assessed), case(known)) + check(assessed.headline, case(known))
    choice = cr.choose(table, max_caused=0.03)
    at = None if choice.epsilon is None else cr.assess(table, epsilon=choice.epsilon).to_dict()
    numbered += check(str(choice), case(choice.to_dict(), at, choice.epsilon or epsilon))
    explained = cr.explain(table, cr.Geometric(epsilon))
    numbered += check(str(explained), case(explained.to_dict()))
    levels = {name: sorted(frame[name].unique()) for name in ("a", "b", "y")}
    released = cr.release(cr.tabulate(frame, ["a", "b"], "y", levels=levels), cr.Geometric(epsilon))
    shown = released.frame.rename(columns={released.frame.columns[-1]: "n"})
    audited = cr.audit(table, shown, count="n", mechanism=cr.Geometric(epsilon))
    numbered += check(str(audited), case({**audited.to_dict(), "released": shown}))
    tables = [{"qid": ["a"], "epsilon": epsilon}, {"qid": ["b"], "epsilon": epsilon}]
    together = cr.assess_together(frame, tables=tables, sensitive="y")
    numbered += check(str(together), case(together.to_dict()))
    simulated = cr.simulate(table, cr.Geometric(epsilon), releases=40, seed=seed)
    numbered += check(str(simulated), case(simulated.to_dict()))
    averaged = cr.average(table, epsilon=epsilon, releases=3)
    numbered += check(str(averaged), case({"releases_made": 3}))
    useful = cr.utility(table, epsilon=epsilon, releases=5)
    numbered += check(str(useful), case(useful.to_dict()))
    sequence = cr.assess_sequence(table, [cr.Step(cr.Geometric(epsilon), "y")])
    caused = known["decision"][0]["caused"]["people"]
    numbered += check(str(sequence), case({"caused": caused}))
    curve = cr.curve(table, epsilon=[epsilon])
    numbered += check(str(curve), case(curve.to_dict()))
    perturbed = cr.assess_perturbation(table, "random-rounding:3", compare=None)
    numbered += check(str(perturbed), case(perturbed.to_dict(), {**known, **perturbed.to_dict()}))
    assert numbered >= 30


@pytest.mark.parametrize("seed", range(10))
def test_every_row_of_what_would_help(seed: int) -> None:
    """The table without a quasi-identifier, and at another epsilon, assessed again."""
    frame = make_frame(seed)
    table = cr.tabulate(frame, ["a", "b"], "y")
    rows = [
        line for line in str(cr.explain(table, cr.Geometric(1.0))).splitlines() if line.startswith(("as it", "with"))
    ]
    for line in rows:
        changed, epsilon = table, 1.0
        if match := re.match(r"without '(\w)'", line):
            changed = cr.tabulate(frame, [name for name in "ab" if name != match[1]], "y")
        elif match := re.match(r"with epsilon ([\d.]+)", line):
            epsilon = float(match[1])
        elif not line.startswith("as it is"):
            continue
        known = cr.assess(changed, epsilon=epsilon).to_dict()
        found = re.fullmatch(rf".*?\s{{2,}}(\d+)\s+{NUMBER}\s+{SHARE}\s+{SHARE}\s+{SHARE}", line)
        assert found is not None, line
        case = Case(frame, epsilon, {}, known)
        own, revealed = max(case.own, 0.0), case.attack("homogeneity")["revealed"]
        assert int(found[1]) == known["table"]["cells"]
        assert same_people(found[2], own), line
        assert same_share(found[3], own / len(frame)), line
        assert same_share(found[4], largest_share(case)), line
        assert same_share(found[5], revealed / len(frame)), line


@pytest.mark.parametrize("seed", range(10))
def test_the_rows_of_a_choice(seed: int) -> None:
    """What is limited, the error of a count and what is revealed, at each epsilon of the screen."""
    frame = make_frame(seed)
    table = cr.tabulate(frame, ["a", "b"], "y")
    for line in str(cr.choose(table, max_caused=0.03, max_ceiling=0.9)).splitlines():
        cells = line.split()
        if cells[:1] not in (["stricter"], ["recommended"], ["looser"]):
            continue
        epsilon = float(cells[1])
        known = cr.assess(table, epsilon=epsilon).to_dict()
        case = Case(frame, epsilon, {}, known)
        texts = re.findall(rf"{SHARE}", line)
        assert float(texts[0].lstrip("under ").rstrip("%")) == pytest.approx(100 * largest_share(case), abs=0.11)
        assert float(texts[1].rstrip("%")) == pytest.approx(100 / (1 + math.exp(-epsilon)), abs=0.11)
        assert f" {known['accuracy']['within']} " in line
        assert same_share(texts[2], case.own / len(frame))
        assert same_share(texts[-1], case.attack("informed")["revealed"] / len(frame))
