"""How a table is made again: recipes, one sensitive attribute of several, large tables that keep no keys."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import cellrisk as cr
from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.web import Settings
from cellrisk.web.recipes import Recipe, find_delta, make_mechanism, narrow
from cellrisk.web.work import Tabulated
from cellrisk.web.workspace import LoadedTable, open_workspace
from tests.web.conftest import PEOPLE


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    path = tmp_path / "kept-elsewhere.csv"
    path.write_text(PEOPLE, encoding="utf-8")
    return Recipe(str(path), "people.csv", ("sex", "age"), ("job", "note"), bins=(("age", "5"),))


def test_a_recipe_makes_the_table(recipe: Recipe) -> None:
    direct = cr.tabulate(recipe.path, ["sex", "age"], ["job", "note"], bins={"age": 5})
    assert recipe.tabulate().profiles("job").equals(direct.profiles("job"))


def test_refusals_name_the_file_as_the_user_does(recipe: Recipe) -> None:
    with pytest.raises(InvalidInput) as refusal:
        Recipe(recipe.path, "people.csv", ("height",), ("job",)).tabulate()
    assert "'people.csv' has no column 'height'" in str(refusal.value)
    Path(recipe.path).unlink()
    with pytest.raises(InvalidInput) as refusal:
        recipe.tabulate()
    assert "kept-elsewhere" not in str(refusal.value)


def test_bins_go_with_the_columns_that_are_left_out(recipe: Recipe) -> None:
    assert recipe.changed(["sex"], None).bins == ()
    assert recipe.changed(None, {"age": "10", "height": "5"}).bins == (("age", "10"),)
    assert recipe.changed(None, None) == recipe


@pytest.mark.parametrize("text", ["", "wide", "5/", "1,2"])
def test_bins_that_cannot_be_read(recipe: Recipe, text: str) -> None:
    with pytest.raises(InvalidInput, match="each bin of column 'age' must be a number"):
        replace(recipe, bins=(("age", text),)).arguments()


def test_one_attribute_of_several_is_as_if_it_were_alone(recipe: Recipe) -> None:
    both = recipe.tabulate()
    alone = cr.tabulate(recipe.path, ["sex", "age"], "job", bins={"age": 5})
    narrowed = narrow(both, "job")
    assert narrowed.sensitive == ("job",)
    assert str(narrowed.summary()) == str(alone.summary())
    assert narrowed.cells().profiles().equals(alone.cells().profiles())
    assert narrow(alone, None) is alone


def test_a_delta_is_found_where_none_is_given() -> None:
    assert find_delta("laplace", 0.1, 100) == 0.0
    assert find_delta("gaussian-analytic", None, 100) == 0.01
    assert find_delta("gaussian-analytic", 0.2, 100) == 0.2
    assert make_mechanism("gaussian-analytic", 1.0, None, "replace", 100) == cr.AnalyticGaussian(
        epsilon=1.0, delta=0.01, neighbours="replace"
    )


def test_only_the_last_of_large_tables_keeps_its_keys(recipe: Recipe) -> None:
    with open_workspace(Settings(workers=1)) as workspace:
        origin = workspace.sources.open_example()
        large = [LoadedTable(recipe, origin, Tabulated(recipe.tabulate(), {}, {}), str(each)) for each in range(2)]
        for kept in large:
            with pytest.raises(CellriskError, match="read first"):
                workspace.cells(kept, "job")
            job = workspace.read_cells(kept, "job")
            assert job.ended.wait(60)
            assert job.result == {"cells": kept.table.n_cells}
            assert workspace.cells(kept, "job").profiles().equals(kept.table.profiles("job"))
        with pytest.raises(CellriskError, match="read first"):
            workspace.cells(large[0], "job")
        table = recipe.tabulate()
        cells = {name: table.cells(name) for name in table.sensitive}
        small = LoadedTable(recipe, origin, Tabulated(table, {"sex": 2}, {}, cells), "small")
        assert workspace.cells(small, "job") is workspace.cells(small, "job")
