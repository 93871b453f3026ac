"""The API against its own description: made-up requests, checked by schemathesis."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy, one_of

from tests.examples import examples
from tests.web.conftest import Running

TABLE = (
    "positions",
    "certainty",
    "figures",
    "admissible",
    "consequences",
    "map",
    "cells",
    "riskiest",
    "glimpse",
    "compare",
    "commands",
    "downloads",
    "perturbed",
    "perturbed/riskiest",
    "perturbed/report",
)
OPERATIONS = [
    *(("GET", path) for path in ("/api/state", "/api/files", "/api/sources/{source}", "/api/ledger")),
    *(("POST", path) for path in ("/api/uploads", "/api/sources", "/api/tables")),
    *(("GET", "/api/jobs/{job}"), ("DELETE", "/api/jobs/{job}"), ("GET", "/api/tables/{table}")),
    *(("POST", f"/api/tables/{{table}}/{what}") for what in TABLE),
    ("GET", "/api/downloads/{download}"),
    *(("POST", path) for path in ("/api/sets/read", "/api/sources/{source}/set", "/api/sources/{source}/set/commands")),
]
ABOUT_THINGS = [each for each in OPERATIONS if any(name in each[1] for name in ("{source}", "{job}", "{table}"))]
FEW = settings(
    max_examples=examples(15),
    derandomize=True,
    database=None,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
UNCHECKED = [
    schemathesis.checks.positive_data_acceptance,  # a column that is not there is well formed, and refused
    schemathesis.checks.ignored_auth,  # tested in test_guard, for every path
]


@pytest.fixture(scope="module")
def document(client: Any) -> Any:
    return client.get("/api/openapi.json").json()


@pytest.fixture(scope="module")
def schema(document: Any) -> Any:
    return schemathesis.openapi.from_dict(document)


@pytest.fixture(scope="module")
def call(server: Running, client: Any) -> Callable[[Any], int]:
    """Sends a case to the server and checks the answer. Work that it begins is cancelled: others need the workers."""
    name = f"cellrisk-{server.port}"
    headers = {"cookie": f"{name}={client.cookies[name]}", "x-cellrisk": "1"}

    def send(case: Any) -> int:
        with requests.Session() as session:
            answer = case.call_and_validate(
                base_url=server.base, session=session, headers=headers, excluded_checks=UNCHECKED
            )
        if answer.status_code == 202:
            client.delete(f"/api/jobs/{answer.json()['job']}")
        return int(answer.status_code)

    return send


@pytest.fixture(scope="module")
def known(client: Any, table: str, finish: Callable[..., Any]) -> dict[str, str]:
    """Ids of things that are there."""
    source = client.post("/api/sources", json={"path": "people.csv"}).json()["source"]
    chosen = {"source": source, "quasi_identifiers": ["sex"], "sensitive": ["job"]}
    answer = client.post("/api/tables", json=chosen)
    finish(answer)
    return {"source": source, "job": answer.json()["job"], "table": table.rpartition("/")[2]}


def repeat(cases: SearchStrategy[Any], call: Callable[[Any], int]) -> list[int]:
    """The status of the answer to each of some cases."""
    found = []

    @FEW
    @given(cases)
    def run(case: Any) -> None:
        found.append(call(case))

    run()
    return found


def find_cases(schema: Any, method: str, path: str) -> SearchStrategy[Any]:
    """Requests that follow the description of an operation, and some that do not."""
    operation = schema[path][method]
    modes = [operation.as_strategy(generation_mode=mode) for mode in schemathesis.GenerationMode]
    return one_of(*modes)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_made_up_requests_are_answered_as_described(
    schema: Any, call: Callable[[Any], int], method: str, path: str
) -> None:
    repeat(find_cases(schema, method, path), call)


@pytest.mark.parametrize(("method", "path"), ABOUT_THINGS)
def test_and_about_things_that_are_there(
    schema: Any, call: Callable[[Any], int], known: dict[str, str], method: str, path: str
) -> None:
    strategy = schema[path][method].as_strategy(generation_mode=schemathesis.GenerationMode.POSITIVE)

    def ask(case: Any) -> int:
        case.path_parameters = {name: known[name] for name in case.path_parameters}
        if isinstance(case.body, dict) and "sensitive" in case.body:
            case.body["sensitive"] = None if "{table}" in path else "job"
        if isinstance(case.body, dict) and "perturbed" in path:  # a made-up text is no rule, and no id of an upload
            case.body |= {"rule": "cell-key", "uploaded": None, "suppress_below": None}
        return call(case)

    assert any(status < 300 for status in repeat(strategy, ask))


def test_a_description_that_lies_is_seen(document: Any, call: Callable[[Any], int]) -> None:
    lie = copy.deepcopy(document)
    lie["components"]["schemas"]["State"]["required"].append("nothing")
    operation = schemathesis.openapi.from_dict(lie)["/api/state"]["GET"]
    with pytest.raises(schemathesis.core.failures.FailureGroup, match="nothing"):
        repeat(operation.as_strategy(), call)


def test_everything_is_described(document: Any) -> None:
    found = [(method.upper(), path) for path, methods in document["paths"].items() for method in methods]
    assert sorted(found) == sorted(OPERATIONS)
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation["description"], (method, path)
            assert {"400", "401", "403", "422"} <= set(operation["responses"]), (method, path)
            assert ("404" in operation["responses"]) == ("{" in path or "tables" in path or "ledger" in path), path
    for name in ("Positions", "RiskMap", "ComparisonAnswer", "Download", "Refusal"):
        assert name in document["components"]["schemas"]
    assert "HTTPValidationError" not in document["components"]["schemas"]


def test_no_page_of_documentation_loads_code_from_elsewhere(client: Any) -> None:
    assert [client.get(path).status_code for path in ("/docs", "/redoc", "/openapi.json")] == [404, 404, 404]
