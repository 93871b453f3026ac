"""Tables that many tests look at, and how tests are spread over processes."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import cellrisk as cr

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
"""Tests run in one process a processor; threads of numpy's own would be in each other's way."""

LONG = (
    *("tests/web/test_browser.py", "tests/counts/test_spark.py", "tests/counts/test_counter.py::test_spark"),
    *("tests/counts/test_spark", "tests/web/test_browser"),
    *(
        "tests/docs/test_site.py",
        "tests/test_r_package.py",
        "tests/test_package.py",
        "tests/noise/test_from_opendp.py",
    ),
    *("tests/risk/measures/test_contract.py", "tests/repeat/ledger/test_staging.py"),
    *("tests/web/test_serving.py", "tests/counts/test_database.py"),
    *(
        "tests/counts/test_engine.py",
        "tests/web/",
        "tests/docs/",
        "tests/reproduction/",
        "tests/publish/releasing/",
    ),
    *("tests/system/", "tests/test_examples.py", "tests/show/reporting/", "tests/counts/", "tests/attacks/"),
)
"""What begins with these takes longest, so it starts first, in this order."""
WITH = {
    "tests/counts/test_counter.py::test_spark": "tests/counts/test_spark.py",
    "tests/web/": "tests/web",
    "tests/reproduction/": "tests/reproduction",
}
"""What goes with other files, because they use the one Spark, server or reproduction of their process."""
APART = ("tests/docs/test_pages.py",)
"""Files whose tests share nothing and take long: each may go to another process."""

FULL_BY_FILE: dict[str, tuple[str, ...]] = {
    "attacks/test_enumeration.py": (
        "test_many_records_in_very_wide_noise[noise0-",
        "test_many_records_in_very_wide_noise[noise3-",
    ),
    "publish/auditing/test_peers.py": (
        "test_entropy_l_is_not_cut_to_a_whole_number",
        "test_the_peers_give_the_same_numbers",
    ),
    "repeat/averaging/test_average.py": ("test_many_releases_tend_to_the_raw_table",),
    "risk/certainty/test_certainty.py": (
        "test_many_labels[100-12-",
        "test_many_labels[20-40-",
    ),
    "decide/test_attack_limits.py": (
        "test_people_who_are_not_at_risk_do_not_raise_the_epsilon[limits1]",
        "test_categories_that_nobody_has_do_not_raise_the_epsilon[limits1]",
        "test_harmful_values_narrow_the_limit",
        "test_a_value_that_was_split_is_assessed_as_one",
    ),
    "decide/test_limits.py": (
        "test_a_report_without_a_binding_limit",
        "test_every_attribute_must_keep_the_limit[limit1]",
    ),
    "docs/test_notebooks.py": ("test_a_notebook_runs",),
    "docs/test_pages.py": ("test_what_a_page_shows_is_what_comes_out[docs/",),  # but those of SHOWN
    "docs/test_site.py": (
        "test_what_cannot_be_built_is_refused[a name that does not exist",
        "test_what_cannot_be_built_is_refused[a snippet that does not exist",
    ),
    "repeat/ledger/test_backends.py": (
        "test_a_disk_that_can_be_read_only",
        "test_a_disk_that_fills",
        "test_several_processes_at_once",
    ),
    "repeat/ledger/test_interrupts.py": ("test_a_release_without_a_ledger",),
    "risk/measures/test_dirichlet.py": ("test_ten_thousand_levels",),
    "risk/measures/test_sizes.py": ("test_a_hundred_thousand_distinct_sizes",),
    "publish/dp_risk/test_private_choice.py": (
        "test_the_choice_keeps_the_limit_and_comes_near_it[permute",
        "test_the_choice_keeps_the_limit_and_comes_near_it[sparse",
    ),
    "publish/dp_risk/test_publish_risk.py": (
        "test_neighbours_look_alike[counts",
        "test_neighbours_look_alike[sensitive bins",
        "test_neighbours_look_alike[text",
    ),
    "show/reporting/test_perturbed.py": ("test_the_command",),
    "show/pictures/test_assessments.py": ("test_three_attributes_leave_a_place_empty",),
    "show/pictures/test_curves.py": (
        "test_names_of_columns_cannot_break_a_picture",
        "test_several_attributes_have_panels",
    ),
    "show/pictures/test_readme_picture.py": ("test_picture_of_the_readme_is_the_one",),
    "show/pictures/test_saving.py": (
        "test_bytes_are_the_same_in_another_process",
        "test_threads_do_not_disturb_each_other",
    ),
    "publish/releasing/test_release.py": ("test_a_domain_of_a_billion",),
    "noise/test_from_opendp.py": ("test_queries_over_frames",),
    "show/reporting/test_report.py": (
        "test_the_same_bytes_in_every_process",
        "test_every_figure_is_at_the_delta_of_the_policy",
        "test_several_attributes_another_measure_and_a_delta",
        "test_who_set_the_limits_and_when",
        "test_missing_values_are_told",
    ),
    "show/reporting/test_report_public.py": (
        "test_two_tables_give_the_public_the_same_page[end of the range]",
        "test_two_tables_give_the_public_the_same_page[given]",
    ),
    "reproduction/test_command.py": ("test_everything_is_written",),
    "publish/simulation/test_drawing.py": ("test_many_seeds_spread_as_standard_errors_say",),
    "counts/test_cells.py": ("test_drop_is_tabulating_without",),
    "counts/test_counter.py": (
        "test_spark[7",
        "test_spark_more",
    ),
    "counts/test_database.py": ("test_texts_that_only_some_take_for_numbers",),
    "counts/test_files.py": ("test_long_fields_of_text",),
    "counts/test_sqlite.py": ("test_every_type_of_duckdb", "test_numbers_and_texts_of_sqlite"),
    "counts/test_other_formats.py": (
        "test_a_value_does_not_change_how_others_are_read",
        "test_many_rows_come_in_parts",
        "test_dates_are_dates[people.xpt]",
        "test_labels_of_several_values_are_told_apart",
    ),
    "counts/test_spark.py": (
        "test_requests",
        *(
            f"test_parquet_gives_what_duckdb_gives[{case}"
            for case in ("bins", "counts", "every kind", "many levels", "numbers", "outside", "text", "times")
        ),
        "test_a_small_table_takes_few_tasks",
        "test_a_spark_of_our_own_is_silent_and_leaves_nothing",
        "test_addresses",
        "test_csv_gives_what_duckdb_gives",
        "test_damaged_and_vanished_files",
        "test_folders_that_name_columns",
        "test_frames_and_tables_however_they_are_cut",
        "test_a_signal_ends_spark_in_one_line[java",
        "test_several_files_and_shapes",
        "test_text_that_is_hard_to_cut",
    ),
    "counts/test_spark_cluster.py": ("",),
    "counts/test_spark_together.py": ("",),
    "test_conventions.py": ("test_a_test_that_hangs_fails",),
    "test_mechanism_given.py": ("test_of_an_object_all_but_its_epsilon_is_taken_where_epsilon_is_looked_for[curve]",),
    "test_pipelines.py": ("test_the_gate_tells_by_the_exit_code",),
    "decide/test_policy.py": (
        "test_a_policy_about_delta_alone",
        "test_report_obeys",
    ),
    "repeat/together/test_releasing.py": ("test_death_at_any_line",),
    "counts/test_columns.py": ("test_a_thousand_edges",),
    "counts/test_refusals.py": ("test_a_schema_of_many_columns_is_not_listed_in_full",),
    "counts/test_engine.py": (
        "test_a_disk_that_is_really_full",
        "test_progress_is_reported",
        "test_spilling_gives_the_same_answer",
        "test_text_with_very_many_values_keeps_to_the_limit",
    ),
    "decide/test_choosing_against_scans.py": ("test_guesses",),
    "publish/simulation/test_constrained.py": ("test_simulated_releases_are_those_of_release",),
    "risk/test_curves.py": ("test_every_point_is_an_assessment",),
    "test_examples.py": (  # those of the statistics office and of the hospital; the company's stay
        "test_a_looser_epsilon",
        "test_one_way_tables",
        "test_shrinkage",
        "test_the_audit_tells",
        "test_the_cells_that_hold_one_diagnosis",
        "test_the_chosen_epsilon",
        "test_the_merge_lowers_the_risk",
        "test_the_people_at_the_rounded_epsilon",
        "test_the_report_puts_that_epsilon",
        "test_the_table_and_what_it_exposes",
    ),
    "risk/explanation/test_explaining.py": (
        "test_adult",
        "test_coarsening_is_tabulating_recoded_values",
    ),
    "test_package.py": (
        "test_a_new_environment",
        "test_other_pythons",
        "test_the_files_of_a_package",
        "test_the_same_files_give_the_same_bytes",
    ),
    "risk/test_people.py": ("test_simulated_releases_of_adult",),
    "decide/test_search.py": (
        "test_against_a_fine_scan",
        "test_all_and_nothing",
    ),
    "decide/usefulness/test_utility.py": ("test_many_quasi_identifiers",),
    "web/test_browser.py": (
        "TestDoor",
        "TestFromFileToReport::test_a_file_that_is_dropped",
        "TestFromFileToReport::test_another_file_starts_anew",
        "TestFromFileToReport::test_the_adult_example",
        "TestFromFileToReport::test_without_a_mouse",
        "TestLedger::test_a_release_is_made_with_its_entry",
        "TestLedger::test_none_was_named",
        "TestLongWork::test_a_new_question_ends_the_one_before",
        "TestLongWork::test_after_a_cancel",
        "TestLongWork::test_cancel",
        "TestLongWork::test_the_curve_is_there",
        "TestReload",
        "TestRefusals::test_a_file_that_is_too_large",
        "TestRefusals::test_no_sensitive_column",
        "TestRelease",
    ),
    "web/test_browser_charts.py": (
        "test_everything_at_twice_the_size",
        "test_labels_that_are_pushed",
        "test_the_other_charts",
    ),
    "web/test_browser_choices.py": (
        "TestAddress::test_a_reload_the_way_back",
        "TestAddress::test_a_restarted_server",
        "TestDeciding::test_what_a_policy",
        "TestLoading::test_counts_are_asked",
        "test_bins_that_cannot_be_read",
        "TestDeciding::test_nothing_is_recommended",
    ),
    "web/test_browser_looks.py": (
        "TestTheme::test_it_follows",
        "test_every_step_on_every_screen",
        "test_the_curve_stays_inside",
        "test_the_question_before_a_release",
    ),
    "web/test_browser_numbers.py": (
        "TestGroups::test_the_riskiest",
        "TestDecisions",
        "TestDownloads::test_commands_can_be_copied",
        "TestDownloads::test_the_report_says",
        "TestLimit::test_typed",
        "TestSlider::test_delta",
        "TestSlider::test_screen_readers",
        "TestSlider::test_switches",
    ),
    "web/test_browser_sets.py": ("",),
    "web/test_firefox.py": ("",),
    "noise/test_key_package.py": ("test_a_table_of_keys_is_published_as_often_as_its_rows_say",),
    "counts/test_sources.py": ("test_counting_a_file_loads_no_pandas[a column a label]",),
    "repeat/ledger/test_ledger.py": (
        "test_threads_share_a_ledger[database]",
        "test_a_release_is_read_back_as_it_was_written[database]",
    ),
    "repeat/together/test_splitting.py": ("test_figures_to_meet",),
    "test_visible.py": ("test_reports_show_what_is_hidden",),
    "show/reporting/test_report_files.py": ("test_the_first_page_tells_of_ledger",),
    "counts/test_joint.py": ("test_who_is_outside_is_left_out_of_the_tables",),
    "publish/dp_risk/test_policies_of_figures.py": ("test_a_private_choice_stays_within_policies",),
}
SHOWN = tuple(
    f"tests/docs/test_pages.py::test_what_a_page_shows_is_what_comes_out[docs/{page}.md]" for page in ("index", "idea")
)
"""The pages that are run beside the README; `make check` runs every page."""
FULL = tuple(f"tests/{file}" + (f"::{test}" if test else "") for file, tests in FULL_BY_FILE.items() for test in tests)
"""What begins with these takes longest and has something smaller of its kind elsewhere: `make check` alone runs it."""
BUILT = "built"
"""So does what looks at the whole site; a small one with flaws is built in `make test`."""

THINNED = {
    "tests/repeat/accounting/test_distributions.py::test_discrete_gaussian_releases": 2,
    "tests/repeat/accounting/test_distributions.py::test_small_and_large_epsilons_many_times": 5,
    "tests/attacks/test_enumeration.py::test_equal_counts_share_what_is_not_all_zero": 7,
    "tests/attacks/test_wiring.py::test_assess_curve_and_choose_agree": 2,
    "tests/risk/certainty/test_certainty.py::test_cells_of_any_size": 3,
    "tests/risk/certainty/test_certainty.py::test_people_expected_behind_a_value": 11,
    "tests/repeat/ledger/test_damage.py::test_a_byte_that_changed": 2,
    "tests/repeat/ledger/test_hostile.py::test_rows_at_random_do_no_harm": 3,
    "tests/risk/measures/test_contract.py::test_random_sizes_agree_with_enumeration": 29,
    "tests/show/pictures/test_saving.py::test_saved_files_are_what_they_say_and_the_same_each_time": 11,
    "tests/publish/releasing/test_neighbours.py::test_a_stranger_alone": 11,
    "tests/publish/releasing/test_neighbours.py::test_neighbours_look_alike": 11,
    "tests/publish/releasing/test_neighbours.py::test_one_value_does_not_decide_how_others_are_read": 11,
    "tests/publish/releasing/test_neighbours.py::test_the_command_looks_alike": 3,
    "tests/publish/releasing/test_release_noise.py::test_dense_and_sparse_releases_have_one_distribution": 11,
    "tests/publish/releasing/test_release_noise.py::test_half_the_noise_is_caught": 5,
    "tests/publish/releasing/test_release_noise.py::test_neighbours_are_hard_to_tell_apart": 11,
    "tests/publish/releasing/test_exact_sampling.py::test_tails_have_their_probability": 4,
    "tests/counts/test_counter.py::test_frames_and_files": 4,
    "tests/counts/test_database.py::test_postgresql_gives_what_the_embedded_engine_gives": 11,
    "tests/counts/test_spark.py::test_bad_text": 5,
    "tests/counts/test_engine.py::test_a_stopped_command_leaves_nothing": 2,
    "tests/counts/test_counting.py::test_any_table": 2,
    "tests/web/test_browser_numbers.py::TestSlider::test_the_numbers_are_those_of_the_command_line": 5,
}
"""Tests of long cases: of each, one in so many is in `make test`, the first among them; `make check` runs them all.
A number that shares no factor with the number of a parameter's values lets every one of them have its turn."""
FEW = 2
"""How many cases of any other test are in `make test`: drawn by its name, so that they are always the same."""
EVERY = ("tests/test_conventions.py", "tests/docs/", "tests/counts/test_spark")
"""Where every case is about something else, or was chosen one by one: no others are left out than those in FULL."""


def find_group(nodeid: str) -> str:
    """Tests with the same answer run in one process, in their order: those of a file, with few exceptions."""
    if nodeid.startswith(APART):
        return nodeid
    nodeid = next((file for start, file in WITH.items() if nodeid.startswith(start)), nodeid)
    return nodeid.partition("::")[0]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is only in `make check`, and what is first."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        whole = BUILT in getattr(item, "fixturenames", ()) or item.nodeid.startswith(FULL)
        if whole and not item.nodeid.startswith(SHOWN):
            item.add_marker("full")
        else:
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for test, found in cases.items():
        kept: Sequence[int] = range(len(found))
        if test in THINNED:
            kept = kept[:: THINNED[test]]
        elif len(found) > FEW and not test.startswith(EVERY):
            kept = random.Random(test).sample(kept, FEW)
        for place, item in enumerate(found):
            if place not in kept:
                item.add_marker("full")
    items.sort(key=lambda item: next((place for place, start in enumerate(LONG) if item.nodeid.startswith(start)), 99))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One process more than there are processors: tests also wait, for browsers, servers and signals."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """What a file sets up, a Spark or a server, is set up once. (xdist's own way, a marker, fails in pytest 9.2.)"""
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return find_group(nodeid)

    config.option.loadscopereorder = False
    return ByGroup(config, log)


@pytest.fixture(scope="session", autouse=True)
def state_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing is kept among what the user who runs the tests keeps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CELLRISK_STATE", str(tmp_path_factory.mktemp("state")))
        patch.delenv("CELLRISK_LEDGER_HEAD", raising=False)
        yield


ADULT_QIDS = ["age", "relationship", "education", "race", "sex", "hours-per-week"]


@pytest.fixture(scope="session")
def adult() -> cr.FrequencyTable:
    """Adult as defined: 27,504 records in 5,009 cells."""
    return cr.tabulate(cr.datasets.adult_as_published(), ADULT_QIDS, "income", bins={"age": 5, "hours-per-week": 10})
