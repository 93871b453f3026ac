"""The API, about sources, tables and sets of tables; and the two pages that use it.

Work that takes longer than a moment is a job: the answer names it, with status 202, and `/api/jobs/{job}` follows it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Depends, Request
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse

from cellrisk.errors import InvalidInput
from cellrisk.web import act, answers, fields, sets
from cellrisk.web.jobs import Job, Work
from cellrisk.web.sources import list_files
from cellrisk.web.workspace import NotThere, Workspace

SECONDS_FOR_AN_ANSWER = 1.5
PAGE = Path(__file__).parent / "page"
STATIC = {file.name for file in PAGE.iterdir() if file.suffix in (".css", ".js")}
QUESTIONS: dict[str, Work] = {
    "positions": answers.find_positions,
    "attacks": answers.trace_attacks,
    "figures": answers.find_figures,
    "admissible": answers.find_admissible,
    "consequences": act.describe_consequences,
    "map": answers.draw_map,
    "riskiest": answers.find_riskiest,
    "commands": act.write_commands,
    "report": act.write_report,
    "release": act.write_release,
}
"""What can be asked of a table, and the work that answers it."""


def find_workspace(request: Request) -> Workspace:
    workspace: Workspace = request.app.state.workspace
    return workspace


InWorkspace = Annotated[Workspace, Depends(find_workspace)]
api = APIRouter(prefix="/api")
page = APIRouter()


@page.get("/")
@page.get("/sets")
def show_page(request: Request) -> HTMLResponse:
    return HTMLResponse(render("index.html.j2" if request.url.path == "/" else "sets.html.j2"))


@page.get("/static/{name}")
def show_static(name: str) -> FileResponse:
    """What the pages are made of."""
    if name not in STATIC:
        raise NotThere("there is no such file")
    return FileResponse(PAGE / name, headers={"cache-control": "no-cache"})


@cache
def render(name: str) -> str:
    """Return a page from its template."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from cellrisk.system.version import __version__

    how: Any = {"autoescape": True, "undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    environment = Environment(loader=PackageLoader("cellrisk.web", "page"), **how)
    return environment.get_template(name).render(version=__version__)


@api.get("/state")
def show_state(workspace: InWorkspace) -> Any:
    """What the server can do."""
    return fields.describe_server(workspace.settings, workspace.policies)


@api.get("/files")
def show_files(workspace: InWorkspace) -> Any:
    """The CSV and Parquet files below the folder; none if the server was started without one."""
    folder = workspace.settings.folder
    files = {} if folder is None else list_files(folder)
    return {"files": [{"path": name, "size": fields.write_size(path.stat().st_size)} for name, path in files.items()]}


@api.post("/uploads")
async def upload(request: Request, name: str, workspace: InWorkspace) -> Any:
    """Takes a file in, the body of the request, streamed to a private folder that is removed when the server ends."""
    length = int(request.headers.get("content-length") or 0)
    return (await workspace.sources.receive(name, length, request.stream())).to_dict()


@api.post("/sources")
def open_source(choice: fields.SourceChoice, workspace: InWorkspace) -> Any:
    """Opens a file of the folder, or the example."""
    if (choice.path is None) == (choice.example is None):
        raise InvalidInput("name a path or an example, one of the two")
    sources = workspace.sources
    return (sources.open_example() if choice.path is None else sources.open_file(choice.path)).to_dict()


@api.get("/sources/{source}")
async def show_columns(source: str, workspace: InWorkspace) -> Any:
    """The columns of a source."""
    return await answer(workspace.look(workspace.origin(source)))


@api.post("/tables")
async def make_table(choice: fields.TableChoice, workspace: InWorkspace) -> Any:
    """Counts the groups of a table, and describes it; the answer's `table` is its id."""
    return await answer(workspace.tabulate(choice))


@api.get("/tables/{table}")
def show_table(table: str, workspace: InWorkspace) -> Any:
    """What a table holds, and what a specialist would say of it."""
    return {"table": table, **workspace.table(table).described}


@api.post("/tables/{table}/{what}")
async def ask_table(table: str, what: str, asked: fields.Setting, workspace: InWorkspace) -> Any:
    """The answer to a question about a table: numbers of the library's results, and texts for the page."""
    work = QUESTIONS.get(what)
    if work is None:
        raise NotThere("there is no such question")
    given = workspace.given(workspace.table(table), asked)
    arguments = {"given": given, "asked": asked}
    if what in ("report", "release"):
        return await answer(workspace.write(work, arguments))
    kept = work is not act.describe_consequences  # the ledger may have changed
    key = (table, what, asked.model_dump_json(), given.policies.describe()) if kept else None
    return await answer(workspace.jobs.submit(work, arguments, key=key))


@api.get("/jobs/{job}")
def show_job(job: str, workspace: InWorkspace) -> Any:
    """How far a job has got, and its result."""
    return workspace.job(job).to_dict()


@api.delete("/jobs/{job}")
def cancel_job(job: str, workspace: InWorkspace) -> Any:
    """Cancels a job; one that has ended stays as it is."""
    work = workspace.job(job)
    workspace.jobs.cancel(work)
    return work.to_dict()


@api.get("/downloads/{download}", response_class=FileResponse)
def fetch_download(download: str, workspace: InWorkspace) -> FileResponse:
    """The file itself."""
    path = workspace.download(download)
    return FileResponse(path, filename=path.name, media_type="application/octet-stream")


@api.get("/ledger")
def show_ledger(workspace: InWorkspace) -> Any:
    """What was released so far, and what it has cost."""
    if workspace.settings.ledger is None:
        raise NotThere("no ledger was named when the server was started", fix="start it with --ledger FILE")
    return act.describe_ledger(workspace.settings.ledger)


def describe_set(source: str, asked: fields.SetText, workspace: Workspace) -> dict[str, Any]:
    origin = workspace.origin(source)
    of_source = {"path": str(origin.find()), "source": origin.name, "policies": workspace.policies}
    return {**of_source, **asked.model_dump()}


@api.post("/sources/{source}/set")
async def assess_set(source: str, asked: fields.SetText, workspace: InWorkspace) -> Any:
    """What the tables of a set file reveal together, counted from the records of this source."""
    arguments = describe_set(source, asked, workspace)
    key = (source, "set", asked.text, arguments["policies"].describe(), workspace.origin(source).stamp())
    return await answer(workspace.jobs.submit(sets.assess_set, arguments, key=key))


@api.post("/sources/{source}/set/report")
async def report_set(source: str, asked: fields.SetText, workspace: InWorkspace) -> Any:
    """The report on a set, to be downloaded."""
    return await answer(workspace.write(sets.write_set_report, describe_set(source, asked, workspace)))


async def answer(job: Job) -> Any:
    """Return the result of a job that ends within moments; else the job itself, to be followed."""
    await to_thread.run_sync(job.ended.wait, SECONDS_FOR_AN_ANSWER)
    if job.state == "failed":
        raise InvalidInput(job.error or "the work failed")
    return JSONResponse(job.result) if job.state == "done" else JSONResponse({"job": job.id}, status_code=202)
