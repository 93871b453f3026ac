"""The API for sets of tables, and the page that asks it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from cellrisk.decide.policies import Policies
from cellrisk.web import answer_models, routes, set_work
from cellrisk.web.set_boxes import in_words_of_boxes
from cellrisk.web.set_commands import write_set_commands
from cellrisk.web.set_models import SetChoice, SetText

api = APIRouter(prefix="/api", responses=routes.REFUSALS)
page = APIRouter(include_in_schema=False)


@page.get("/sets")
def show_page() -> HTMLResponse:
    """The page of sets."""
    return HTMLResponse(routes.render("sets.html.j2"))


SOON = {status: answer for status, answer in routes.SOON.items() if status != 404}


@api.post("/sets/read", responses=SOON, response_model=answer_models.SetRead)
async def read_set(asked: SetText, workspace: routes.InWorkspace) -> Any:
    """What a set file holds, for the boxes of the page. The source that it names is not opened."""
    job = workspace.jobs.submit(set_work.read_set, asked.model_dump())
    return await routes.answer_soon(job, answer_models.SetRead)


@api.post("/sources/{source}/set", status_code=202, responses=routes.QUEUED)
def assess_set(source: str, choice: SetChoice, workspace: routes.InWorkspace) -> answer_models.JobTicket:
    """What tables about the same people give away together: a job, whose result is `SetAnswer`."""
    origin = workspace.origin(source)
    policies = Policies.in_force(workspace.settings.policy)
    arguments = {
        "path": str(origin.find()),
        "name": origin.name,
        "choice": choice,
        "policy": policies,
        "unpacked_limit": origin.unpacked_limit,
    }
    key = (source, "set", choice.model_dump_json(), policies.describe(), origin.stamp())
    return routes.ticket(workspace.jobs.submit(set_work.assess_set, arguments, key=key))


@api.post("/sources/{source}/set/commands", responses=routes.ASKED)
def show_commands(source: str, choice: SetChoice, workspace: routes.InWorkspace) -> answer_models.SetCommands:
    """The set file, the command line and the Python code that give the same result."""
    origin = workspace.origin(source)
    with in_words_of_boxes():
        return write_set_commands(choice, origin.command)
