"""Pictures as files: what they say they are, the same bytes every time, and what is refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

import cellrisk as cr
from cellrisk.errors import InvalidInput
from cellrisk.show.pictures import (
    ENDINGS,
    check_picture_path,
    draw_curve,
    draw_sizes,
    save,
    to_svg,
)
from tests.show.pictures.drawing import MAGIC

SOURCE = Path(__file__).resolve().parents[3] / "src"


# Saving


@pytest.mark.parametrize("ending", [*ENDINGS, ".PNG"])
def test_saved_files_are_what_they_say_and_the_same_each_time(found: cr.RiskCurve, ending: str, tmp_path: Path) -> None:
    first = save(draw_curve(found), tmp_path / f"first{ending}")
    again = draw_curve(found)
    second = save(again, tmp_path / f"second{ending}")
    third = save(again, tmp_path / f"third{ending}")
    content = first.read_bytes()
    assert content.startswith(MAGIC[ending.lower()])
    assert content == second.read_bytes() == third.read_bytes()
    assert not re.search(rb"20\d\d-\d\d-\d\d|CreationDate|Software", content)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in (first, second, third))


@pytest.mark.slow
def test_bytes_are_the_same_in_another_process(tmp_path: Path) -> None:
    script = (
        "import sys, hashlib, cellrisk as cr, pandas as pd\n"
        "from cellrisk.show.pictures import draw_sizes, save\n"
        "table = cr.tabulate(pd.DataFrame({'age': [1, 1, 2], 'job': list('aba')}), ['age'], 'job')\n"
        "for ending in ('svg', 'png', 'pdf'):\n"
        "    path = save(draw_sizes(table), f'{sys.argv[1]}.{ending}')\n"
        "    print(hashlib.sha256(path.read_bytes()).hexdigest())\n"
    )
    answers = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONHASHSEED": seed}
        command = [sys.executable, "-W", "error", "-c", script, str(tmp_path / seed)]
        answers.add(
            subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300).stdout
        )
    assert len(answers) == 1


def test_reader_settings_change_nothing_and_stay(found: cr.RiskCurve) -> None:
    import matplotlib

    plain = to_svg(draw_curve(found))
    with matplotlib.rc_context({"font.size": 30, "axes.grid": True, "svg.hashsalt": None}):
        assert to_svg(draw_curve(found)) == plain
        assert matplotlib.rcParams["font.size"] == 30


@pytest.mark.slow
def test_threads_do_not_disturb_each_other(found: cr.RiskCurve, two: cr.FrequencyTable) -> None:
    expected = to_svg(draw_curve(found)), to_svg(draw_sizes(two))
    answers: dict[int, str] = {}

    def work(place: int) -> None:
        answers[place] = to_svg(draw_sizes(two)) if place % 2 else to_svg(draw_curve(found))

    threads = [threading.Thread(target=work, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answers[place] for place in range(4)] == [expected[place % 2] for place in range(4)]


def test_svg_for_a_page_is_one_element_with_its_own_names(figure: Figure, two: cr.FrequencyTable) -> None:
    texts = [to_svg(figure), to_svg(draw_sizes(two))]
    assert texts[0] == to_svg(figure)
    names = []
    for text in texts:
        assert text.startswith("<svg")
        element = ElementTree.fromstring(text)
        assert element.tag.endswith("svg")
        names.append({each.attrib["id"] for each in element.iter() if "id" in each.attrib})
        used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
        assert used
        assert used <= names[-1]
        assert "<text" not in text
    assert names[0].isdisjoint(names[1])


@pytest.mark.parametrize("name", ["risk.jpg", "risk", "risk.svgz", ".png", "risk.svg.exe"])
def test_unknown_ending_is_refused(figure: Figure, name: str, tmp_path: Path) -> None:
    for refuse in (lambda: save(figure, tmp_path / name), lambda: check_picture_path(tmp_path / name)):
        with pytest.raises(InvalidInput, match=r"picture format.*\.svg, \.png, \.pdf"):
            refuse()
    assert list(tmp_path.iterdir()) == []


def test_place_that_cannot_be_written_is_refused(
    figure: Figure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidInput, match="does not exist"):
        save(figure, tmp_path / "nowhere" / "risk.svg")
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(InvalidInput, match="folder"):
        check_picture_path(tmp_path / "folder.svg")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InvalidInput, match="cannot be written"):
        check_picture_path(tmp_path / "risk.svg")


def test_failed_writing_leaves_what_was_there(figure: Figure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "risk.svg"
    path.write_text("before")

    def refuse(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(InvalidInput, match="cannot be written"):
        save(figure, path)
    assert [each.name for each in tmp_path.iterdir()] == ["risk.svg"]
    assert path.read_text() == "before"


def test_importing_cellrisk_and_its_pictures_does_not_load_matplotlib() -> None:
    script = "import sys, cellrisk, cellrisk.show.pictures, cellrisk.cli; print('matplotlib' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    run = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True, timeout=300
    )
    assert run.stdout.strip() == "False"
