"""A template of others arranges what a report holds: it reaches nothing else, and it ends."""

from __future__ import annotations

import itertools
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from markupsafe import Markup

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.errors import InvalidInput
from cellrisk.show.reporting import Report
from cellrisk.show.reporting.document import render
from cellrisk.system import isolated, templates

DATA: dict[str, Any] = {"title": "A <b> title\u202e", "verdict": {"title": "kept"}, "sections": [{"name": "one"}]}
OBJECTS = (
    *("as_is", "range", "title", "verdict", "self", "title.join", "sections", "as_is('x').format", "verdict.get"),
    *("as_is('x').escape", "range(3)", "loop", "macro", "caller", "nowhere", "cycler", "dict.fromkeys"),
    *("(sections | map('list'))", "(title | sentence)", "(1 | number)", "([title] | map('names'))"),
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
    "{{ thing | number(path) }}",
    "{{ '%(x)s' % {'x': thing[path]} }}",
)
AROUND = "{{% macro macro() %}}{{% endmacro %}}{{% for n in [1] %}}{}{{% endfor %}}"
INSIDE = ("<class", "<module", "<built-in", "mappingproxy", "<frame", "<code", "method-wrapper", "environ", "SECRET")


def fill(template: str) -> str:
    return render("board.html.j2", DATA, template)


def test_no_way_out_of_the_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "SECRET")
    environment = templates.make_environment({})
    shown = {}
    for form, thing in itertools.product(FORMS, OBJECTS):
        template = environment.from_string(AROUND.format(form.replace("thing", thing)))
        for path in PATHS:
            with suppress(Exception):
                document = template.render(DATA, path=path)
                shown[form, thing, path] = str(Markup(document).unescape()).replace(path, "")
    assert [what for what, document in shown.items() if any(word in document for word in INSIDE)] == []
    assert 0 < len(shown) < len(FORMS) * len(OBJECTS) * len(PATHS) // 2


WRONG = {
    "{{ as_is.format(as_is('{0.__globals__[sys].modules[os].environ}'), range) }}": "UndefinedError in line 2",
    "{{ title.__class__ }}": "SecurityError in line 2",
    "{% include '/etc/passwd' %}": "TemplateNotFound in line 2",
    "{% import '../document.py' as x %}{{ x }}": "TemplateNotFound in line 2",
    "{% extends '/etc/passwd' %}": "TemplateNotFound in line 2",
    "{{ nowhere }}": "UndefinedError in line 2",
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
        fill(f"first line\n{text}")
    assert f"the template cannot be filled in ({WRONG[text]}); allowed: Jinja with" in str(refusal.value)


LONG = {
    "loops": "{% for a in range(99999) %}" * 3 + "{% endfor %}" * 3,
    "exponents": "{{ 9 ** (9 ** 9) }}",
    "a list that doubles": "{% macro m(x) %}{{ m(x + x) }}{% endmacro %}{{ m([title] * 9999) }}",
    "a text that doubles": "{% macro m(x) %}{{ m(x ~ x) }}{% endmacro %}{{ m('a' * 9999) }}",
    "indented": "{{ ('a\\n' * 10 ** 7) | indent(10 ** 4) }}",
    "a wide number": "{{ 1 | number('99999999999d') }}",
}


@pytest.mark.parametrize("name", LONG)
def test_every_template_ends(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "SECONDS", 2)
    with pytest.raises(
        InvalidInput, match=r"the template cannot be filled in \((MemoryError|it takes more than 2 sec|its)"
    ):
        fill(LONG[name])


def test_the_other_process_starts_with_nothing_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Not the environment, and no module that lies in the working folder."""
    monkeypatch.setenv("TOKEN", "SECRET")
    monkeypatch.chdir(tmp_path)
    for name in ("json", "jinja2", "markupsafe", "traceback", "resource", "cellrisk", "sitecustomize"):
        Path(f"{name}.py").write_text("open('ran', 'w').close()")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert fill("{{ title }}") == "A &lt;b&gt; title\\u202e"
    assert not Path("ran").exists()
    shown = "Mock(render=lambda data: 'shown ' + ' '.join(os.environ.values()))"
    stub = f"templates.make_environment = lambda files: Mock(from_string=lambda text: {shown})"
    imports = "import os; from unittest.mock import Mock; from cellrisk.system import templates"
    monkeypatch.setattr(isolated, "START", isolated.START.replace("main()", f"{imports}; {stub}; main()"))
    assert fill("") == "shown "


@pytest.mark.usefixtures("no_pictures")
class TestDocuments:
    """A house's own template gets the data of the document, and may extend the package's template."""

    def make(self, tmp_path: Path, name: str, template: str, table: cr.FrequencyTable) -> Report:
        path = tmp_path / "house.j2"
        path.write_text(template, encoding="utf-8")
        asked: dict[str, Any] = {"title": "A <b> title", "template": path}
        if name == "set":
            levels = {domain.name: list(domain.labels) for domain in table.cells().domains}
            found = cr.assess_together(table.to_frame(), [{"qid": "town"}, {"qid": ["town", "age"]}], "trade",
                                       count="count", levels=levels, epsilon=1.0)  # fmt: skip
            return cr.report(found, **asked)
        if name == "perturbation":
            return cr.report(table, perturbation="random-rounding:3", **asked)
        return cr.report(table, epsilon=1.0, public=name == "public", **asked)

    @pytest.mark.parametrize("name", ["board", "public", "perturbation", "set"])
    def test_extending_gives_the_same_document_with_another_head(
        self, table: cr.FrequencyTable, tmp_path: Path, name: str
    ) -> None:
        usual = f"{{% extends '{name}.html.j2' %}}"
        made = self.make(tmp_path, name, f"{usual}{{% block about %}}House{{% endblock %}}", table).html
        usual = self.make(tmp_path, name, usual, table).html
        assert "House" in made
        assert "A &lt;b&gt; title" in made
        assert len(made) > 0.9 * len(usual) > 5_000
        assert made.partition("<h2>")[2] == usual.partition("<h2>")[2]

    @pytest.mark.parametrize("name", ["board", "public", "perturbation", "set"])
    def test_a_template_sees_the_keys_that_are_documented(
        self, table: cr.FrequencyTable, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen: dict[str, Any] = {}

        def keep(template: str, files: Any, data: dict[str, Any]) -> str:
            seen.update(json.loads(json.dumps(data)))
            return template

        monkeypatch.setattr("cellrisk.show.reporting.document.fill_apart", keep)
        self.make(tmp_path, name, "x", table)
        page = Path(__file__).parents[3] / "docs" / "how-to" / "reports.md"
        rows = [line.split("|")[1:3] for line in page.read_text("utf-8").splitlines() if line.startswith("| `")]
        told = [keys for keys, documents in rows if {name, "all"} & set(documents.strip().split(", "))]
        documented = {key.strip(" `") for keys in told for key in keys.split(",")}
        assert set(seen) == documented


@pytest.mark.usefixtures("no_pictures")
def test_the_command_refuses_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("sex,job\n" + "f,cook\nm,SECRET\n" * 4)
    Path("house.j2").write_text("<p>\n{{ title[verdict.kind] }}")
    asked = ["report", "people.csv", "--qid", "sex", "--sensitive", "job", "--epsilon", "1", "--mechanism", "geometric"]
    assert main([*asked, "--template", "house.j2", "--output", "out.html"]) == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    assert "(UndefinedError in line 2)" in said
    assert "SECRET" not in said
    assert not Path("out.html").exists()
