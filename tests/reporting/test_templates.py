"""A template of others arranges what a report holds: it reaches nothing else, and it ends."""

from __future__ import annotations

import itertools
from contextlib import suppress
from importlib import resources
from pathlib import Path
from types import SimpleNamespace

import pytest
from markupsafe import Markup

from cellrisk.cli import main
from cellrisk.errors import InvalidInput
from cellrisk.show.reporting.blocks import Bullets, Facts, Page, Picture, Section, TableBlock, Verdict, Words
from cellrisk.show.reporting.document import render
from cellrisk.system import templates

BLOCKS = (
    Words(("<w>",)),
    Bullets(("one", "two"), "list"),
    Facts((("name", "value"),)),
    TableBlock("caption", ("a", "b"), (("1", "2"), ("3", "4")), marked=1),
    Picture("<svg></svg>", "a picture"),
)
PAGE = Page(
    "A <b> title\u202e",
    (("for", "the board"),),
    "banner",
    "decision",
    Verdict("kept", "kept", ("x",)),
    (Section("one", "One", ("lead",), BLOCKS),),
    front=BLOCKS[:1],
    sign_off=("name", "date"),
)
OBJECTS = (
    *("as_is", "range", "page", "style", "self", "page.title.join", "page.sections", "as_is('x').format"),
    *("as_is('x').escape", "range(3)", "loop", "macro", "caller", "nowhere", "cycler", "dict.fromkeys"),
    "(page.sections | map('list'))",
)
PATHS = (
    *("__class__", "__init__.__globals__", "__globals__", "__dict__", "__self__", "__builtins__", "mro"),
    *("gi_frame.f_globals", "_environment", "__code__", "__init__.__globals__[sys].modules[os].environ"),
)
FORMS = (
    "{{ thing[path] }}",
    "{{ thing[path]() }}",
    "{{ thing | attr(path) }}",
    "{{ [thing] | map(attribute=path) | list }}",
    "{{ [thing] | groupby(path) | map('first') | list }}",
    "{{ ('{0.' ~ path ~ '}').format(thing) }}",
    "{{ ('{x.' ~ path ~ '}').format_map({'x': thing}) }}",
    "{{ as_is('{0.' ~ path ~ '}').format(thing) }}",
    "{{ as_is('{x.' ~ path ~ '}').format_map({'x': thing}) }}",
    "{{ as_is.format(as_is('{0.' ~ path ~ '}'), thing) }}",
    "{{ as_is.format_map(as_is('{x.' ~ path ~ '}'), {'x': thing}) }}",
    "{{ thing.format(as_is('{0.' ~ path ~ '}'), thing) }}",
    "{{ (('{0.' ~ path ~ '}') | attr('format'))(thing) }}",
    "{{ ['{0.' ~ path ~ '}'] | map('format', thing) | list }}",
    "{{ '%(x)s' % {'x': thing[path]} }}",
)
AROUND = "{{% macro macro() %}}{{% endmacro %}}{{% for n in [1] %}}{}{{% endfor %}}"
INSIDE = ("<class", "<module", "<built-in", "mappingproxy", "<frame", "<code", "method-wrapper", "environ", "SECRET")


def test_no_way_out_of_the_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "SECRET")
    environment = templates.make_environment()
    given = SimpleNamespace(title="title", sections=[SimpleNamespace(name="one")])
    shown = {}
    for form, thing in itertools.product(FORMS, OBJECTS):
        template = environment.from_string(AROUND.format(form.replace("thing", thing)))
        for path in PATHS:
            with suppress(Exception):
                document = template.render(page=given, style=Markup("x"), path=path)
                shown[form, thing, path] = str(Markup(document).unescape()).replace(path, "")
    assert [what for what, document in shown.items() if any(word in document for word in INSIDE)] == []
    assert 0 < len(shown) < len(FORMS) * len(OBJECTS) * len(PATHS) // 2


def test_the_usual_template_gives_the_usual_document() -> None:
    own = resources.files("cellrisk.show.reporting").joinpath("page.html.j2").read_text("utf-8")
    assert render(PAGE, own) == render(PAGE)


WRONG = {
    "{{ as_is.format(as_is('{0.__globals__[sys].modules[os].environ}'), range) }}": "UndefinedError in line 2",
    "{{ page.__class__ }}": "SecurityError in line 2",
    "{% include '/etc/passwd' %}": "TypeError in line 2",
    "{% import 'secret.txt' as x %}{{ x }}": "TypeError in line 2",
    "{% extends '/etc/passwd' %}": "TypeError in line 2",
    "{{ page.nowhere }}": "UndefinedError in line 2",
    "{% for %}": "TemplateSyntaxError in line 2",
    "{{ 1 / 0 }}": "ZeroDivisionError in line 2",
    "{{ '\\ud800' }}": "UnicodeEncodeError",
    "{{ " + "(" * 5000: "RecursionError",
    "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}": "RecursionError in line 2",
    "{{ range(10 ** 9) }}": "OverflowError in line 2",
    "{{ [range(99999)] * 99 }}{{ 'a' * 10 ** 11 }}": "MemoryError in line 2",
    "{{ 'a' | center(10 ** 11) }}": "MemoryError in line 2",
    "{{ '%99999999999d' | format(1) }}": "MemoryError in line 2",
    "{{ 'a'.ljust(10 ** 11) }}": "MemoryError in line 2",
}


@pytest.mark.parametrize("text", WRONG)
def test_errors_name_the_line(text: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        render(PAGE, f"first line\n{text}")
    assert f"the template cannot be filled in ({WRONG[text]}); allowed: Jinja with page" in str(refusal.value)


LONG = {
    "loops": "{% for a in range(99999) %}" * 3 + "{% endfor %}" * 3,
    "exponents": "{{ 9 ** (9 ** 9) }}",
    "a list that doubles": "{% macro m(x) %}{{ m(x + x) }}{% endmacro %}{{ m([page.title] * 9999) }}",
    "a text that doubles": "{% macro m(x) %}{{ m(x ~ x) }}{% endmacro %}{{ m('a' * 9999) }}",
    "indented": "{{ ('a\\n' * 10 ** 7) | indent(10 ** 4) }}",
}


@pytest.mark.parametrize("name", LONG)
def test_every_template_ends(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "SECONDS", 2)
    with pytest.raises(
        InvalidInput, match=r"the template cannot be filled in \((MemoryError|it takes more than 2 sec|its)"
    ):
        render(PAGE, LONG[name])


def test_the_other_process_starts_with_nothing_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Not the environment, and no module that lies in the working folder."""
    monkeypatch.setenv("TOKEN", "SECRET")
    monkeypatch.chdir(tmp_path)
    for name in ("json", "jinja2", "markupsafe", "traceback", "resource", "cellrisk", "sitecustomize"):
        Path(f"{name}.py").write_text("open('ran', 'w').close()")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    told = "import json, os; print(json.dumps({'document': ' '.join(os.environ.values())}))"
    assert render(PAGE, "{{ page.title }}") == "A &lt;b&gt; title\\u202e"
    assert not Path("ran").exists()
    monkeypatch.setattr(templates, "START", told)
    assert "SECRET" not in render(PAGE, "")


@pytest.mark.usefixtures("no_pictures")
def test_the_command_refuses_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("sex,job\n" + "f,cook\nm,SECRET\n" * 4)
    Path("house.j2").write_text("<p>\n{{ page.title[page.banner] }}")
    asked = ["report", "people.csv", "--qid", "sex", "--sensitive", "job", "--epsilon", "1", "--mechanism", "geometric"]
    assert main([*asked, "--template", "house.j2", "--output", "out.html"]) == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    assert "(UndefinedError in line 2)" in said
    assert "SECRET" not in said
    assert not Path("out.html").exists()
