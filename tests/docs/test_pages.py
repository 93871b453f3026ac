"""The README and the documentation tell the truth: commands and code run, and what is shown is what comes out."""

from __future__ import annotations

import contextlib
import difflib
import io
import re
from pathlib import Path

import pytest
from tools.pages import PageError, agree, all_pages, read_blocks, run_page

from cellrisk.cli import main as run_command

REPOSITORY = Path(__file__).resolve().parents[2]
README = REPOSITORY / "README.md"
FIRST_PAGES = {"README.md", "docs/index.md", "docs/idea.md"}
PAGES = {str(page.relative_to(REPOSITORY)): page for page in all_pages()}


def bodies(page: Path, language: str) -> list[str]:
    return [block.body for block in read_blocks(page.read_text(encoding="utf-8")) if block.language == language]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name, marks=[] if name in FIRST_PAGES else [pytest.mark.slow])
        for name, page in PAGES.items()
    ],
)
def test_what_a_page_shows_is_what_comes_out(page: Path) -> None:
    shown, true = page.read_text(encoding="utf-8"), run_page(page)
    stale = "\n".join(difflib.unified_diff(shown.splitlines(), true.splitlines(), "shown", "true", n=1, lineterm=""))
    assert shown == true, f"tools/pages.py {page.name} mends this:\n{stale}"


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for elsewhere in (r"(?ms)^ *```.*?^ *```$", r"`[^`\n]*`", r"(?s)\$\$.*?\$\$", r"\$[^$]*\$"):  # code and formulas
        text = re.sub(elsewhere, "", text)
    for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text):
        assert (page.parent / target).exists(), target


def test_make_targets_exist() -> None:
    named = re.findall(r"^make (\w+)", "".join(bodies(README, "sh")), flags=re.MULTILINE)
    assert named == ["run", "test"]
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    assert all(re.search(rf"^{target}:", makefile, flags=re.MULTILINE) for target in named)


DIALECT = re.compile(
    r"\b(somebody|whoever|rightly|goes with|so that|in place of|gives? away|read off|by chance|as it were|does the "
    r"mathematics|would at all|is told|speaks? of|lets? (?:you|in)|stands? (?:behind|beside))\b|\b0\.0%",
    re.IGNORECASE,
)
MOST_WORDS = 30


def sentences(text: str) -> list[str]:
    """Return the sentences of a page, without blocks of code, formulas, tables and links."""
    for pattern, word in (
        (r"(?ms)^ *```.*?^ *```$", "\n\n"),
        (r"(?s)\$\$.*?\$\$|\$[^$]*\$|`[^`]*`", "X"),
        (r"(?m)^\|.*$|^#.*$", "\n"),
        (r"\]\([^)]*\)|<[^>]*>", ""),
    ):
        text = re.sub(pattern, word, text)
    paragraphs = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d\.) )", text)
    return [line for part in paragraphs for line in re.split(r"(?<=[.!?])\**\s+", " ".join(part.split()))]


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_a_page_has_plain_words_and_short_sentences(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert DIALECT.findall(re.sub(r"(?ms)^ *```.*?^ *```$", "", text)) == []
    assert [line for line in sentences(text) if len(line.split()) > MOST_WORDS] == []


def test_the_readme_shows_what_its_code_prints() -> None:
    blocks = read_blocks(README.read_text(encoding="utf-8"))
    examples = [
        (block, after) for block, after in zip(blocks, [*blocks[1:], None], strict=True) if block.language == "python"
    ]
    assert examples
    for example, after in examples:
        promised = re.findall(r"^print\(.*\)  # (.*)$", example.body, flags=re.MULTILINE)
        assert promised or (after is not None and after.language == "text")
        if promised:
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(example.body, "README.md", "exec"), {})
            assert printed.getvalue().splitlines() == promised


@pytest.fixture(scope="module")
def demo() -> str:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert run_command(["demo"]) == 0
    return printed.getvalue()


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_first_screen_is_what_the_demo_prints(page: str, demo: str) -> None:
    (shown,) = [body for body in bodies(PAGES[page], "text") if "Homogeneity attack" in body]
    assert shown.strip() in demo


def written(folder: Path, text: str) -> Path:
    page = folder / "page.md"
    page.write_text(text.replace("'''", "```"), encoding="utf-8")
    return page


STALE = {
    "a command": ("'''sh\ncellrisk --version\n'''\n\n'''text\ncellrisk 0\n'''\n", "cellrisk 0.2.0"),
    "code": ("'''python\nx = 2\n'''\n\nand\n\n'''python\nprint(x)\n'''\n\n'''text\n3\n'''\n", "2"),
    "a doctest": ("'''pycon\n>>> x = 2\n>>> x\n3\n'''\n", "2"),
    "an indented block": ("- so\n\n    '''python\n    print(2)\n    '''\n\n    '''text\n    3\n    '''\n", "    2"),
    "a continued line": ("'''sh\ncellrisk \\\n  --version\n'''\n'''text\n'''\n", "cellrisk 0.2.0"),
    "an expected refusal": (
        "'''sh\ncellrisk inspect none.csv --qid a --sensitive b  # exit 2\n'''\n'''text\n'''\n",
        "cellrisk: there is no such file",
    ),
}


@pytest.mark.parametrize(("text", "true"), STALE.values(), ids=STALE)
def test_a_stale_output_is_seen_and_mended(text: str, true: str, tmp_path: Path) -> None:
    page = written(tmp_path, text)
    before = page.read_text(encoding="utf-8")
    after = run_page(page)
    assert after != before
    assert any(line.startswith(true) for line in after.splitlines())
    page.write_text(after, encoding="utf-8")
    assert run_page(page) == after


REFUSED = {
    "a command that fails": (
        "'''sh\ncellrisk inspect none.csv --qid a --sensitive b\n'''\n",
        "exit code 2, expected 0",
    ),
    "an unknown option": ("'''sh\ncellrisk serve --colour red\n'''\n", "--colour"),
    "a quote that does not end": ("'''sh\ncellrisk 'a\n'''\n", "No closing quotation"),
    "code that raises": ("'''python\n1 / 0\n'''\n", "ZeroDivisionError"),
    "a doctest that raises": ("'''pycon\n>>> 1 / 0\n2\n'''\n", "ZeroDivisionError"),
    "settings that cannot be read": ("'''toml title=\"cellrisk.toml\"\na = \n'''\n", "page.md:1"),
    "a kind that would not be run": ("'''bash\ncellrisk --version\n'''\n", "unknown kind 'bash'"),
    "an output of what is not run": ("'''sh\nmake test\n'''\n'''text\n'''\n", "not run"),
    "an output with the folder's path": ("'''python\nimport os\nprint(os.getcwd())\n'''\n'''text\n'''\n", "path"),
    "a block that does not end": ("'''sh\nmake test\n", "does not end"),
}


@pytest.mark.parametrize(("text", "why"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_run_is_refused(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(PageError, match=re.escape(why)):
        run_page(written(tmp_path, text))


def test_a_line_of_dots_stands_for_any_lines() -> None:
    assert agree("a\n...\nd\n", "a\nb\nc\nd\n")
    assert agree("...\n", "")
    assert not agree("a\n...\nd\n", "a\nb\n")
    assert not agree("a...\n", "ab\n")


def test_other_blocks_are_left_alone(tmp_path: Path) -> None:
    shown = "'''console\n$ rm -rf everything\n'''\n\n'''text\nas it is\n'''\n"
    page = written(tmp_path, f"{shown}\n'''sh\nmake nothing\ncellrisk serve --port 0\n'''\n")
    assert run_page(page) == page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_no_command_hides_from_being_run(page: Path) -> None:
    text = re.sub(r"(?ms)^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"))
    assert re.findall(r"^(?:    |\t).*cellrisk .*$", text, flags=re.MULTILINE) == []
