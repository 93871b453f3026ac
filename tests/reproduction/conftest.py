"""One small reproduction for all tests: Adult, and 250 invented records in the place of Bankruptcy."""

from __future__ import annotations

import random

import pytest

from cellrisk.paper import Reproduction, bankruptcy, experiments, reproduce
from tests.shared_data import FOLDER

POINTS, RELEASES = 6, 2


def invent_records() -> list[tuple[str, ...]]:
    """250 records in the columns of Bankruptcy; the class follows from the others, financial flexibility does not."""
    generator = random.Random(7)
    rows = []
    for _ in range(250):
        others = [generator.choice("PAN") for _ in range(3)]
        flexibility = generator.choice("PAN")
        kind = "B" if (others[0], flexibility) < ("N", "P") else "NB"
        rows.append((others[0], others[1], flexibility, others[2], others[0], others[1], kind))
    return rows


def as_text(rows: list[tuple[str, ...]]) -> str:
    """The form of UCI's file."""
    return "".join(",".join(row) + "\n" for row in rows)


@pytest.fixture(scope="session")
def rows() -> list[tuple[str, ...]]:
    return invent_records()


@pytest.fixture(scope="session")
def digest(rows: list[tuple[str, ...]]) -> str:
    return bankruptcy.digest_of(rows)


@pytest.fixture
def recognised(digest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The invented records pass for those of Bankruptcy."""
    monkeypatch.setattr(bankruptcy, "DIGEST", digest)


@pytest.fixture(scope="session")
def shares() -> list[float]:
    """How far the work of `found` had got, as it was told."""
    return []


@pytest.fixture(scope="session")
def found(
    rows: list[tuple[str, ...]], digest: str, shares: list[float], tmp_path_factory: pytest.TempPathFactory
) -> Reproduction:
    """Everything, with the invented records."""
    path = tmp_path_factory.mktemp("data") / "records.txt"
    path.write_text(as_text(rows), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bankruptcy, "DIGEST", digest)
        return reproduce(path, points=POINTS, releases=RELEASES, progress=shares.append)


@pytest.fixture
def counted(found: Reproduction, monkeypatch: pytest.MonkeyPatch) -> None:
    """Adult is not counted again: its tables are those of the other tests."""
    adult = tuple(each for each in found.experiments if each.name == "Adult")
    monkeypatch.setattr(experiments, "adult_experiments", lambda: adult)


@pytest.fixture(scope="session")
def real(found: Reproduction) -> Reproduction:
    """Everything, with the authors' table of counts; for tests that are skipped where it is not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiments, "adult_experiments", lambda: found.experiments[:2])
        return reproduce(FOLDER / "bankcount.csv", points=11, releases=20)
