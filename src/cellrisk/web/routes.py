"""The API, and the page itself."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse

from cellrisk.counts.preview import Preview
from cellrisk.decide.policies import Policies
from cellrisk.errors import InvalidInput
from cellrisk.web import answers, models, places, questions, work
from cellrisk.web.commands import write_commands
from cellrisk.web.desk import Desk, Kept, NotThere
from cellrisk.web.jobs import Job
from cellrisk.web.recipes import Recipe, say_delta, settle, settle_delta

SECONDS_FOR_A_PREVIEW = 1.5
"""A preview that is ready so soon is the answer; else the answer is its job."""
SCRIPTS = (
    *("act.js", "app.js", "cells.js", "charts.js", "compare.js", "decide.js", "elements.js", "first.js", "ledger.js"),
    *("load.js", "numbers.js", "see.js", "server.js", "state.js", "steps.js", "plotly.min.js"),
)
STATIC = {"app.css": "text/css", **dict.fromkeys(SCRIPTS, "text/javascript")}


def find_desk(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


def find_table(table: str, desk: Annotated[Desk, Depends(find_desk)]) -> Kept:
    return desk.table(table)


AtDesk = Annotated[Desk, Depends(find_desk)]
OfTable = Annotated[Kept, Depends(find_table)]

REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": models.Refusal, "description": "The request cannot be read, or names another host."},
    401: {"model": models.Refusal, "description": "The cookie is missing."},
    403: {"model": models.Refusal, "description": "The request comes from another site."},
    422: {"model": models.Refusal, "description": "A value or combination that cannot give a right answer."},
}
MISSING: dict[int | str, dict[str, Any]] = {404: {"model": models.Refusal, "description": "It is not there."}}
LARGE: dict[int | str, dict[str, Any]] = {413: {"model": models.Refusal, "description": "The request is too large."}}
QUEUED: dict[int | str, dict[str, Any]] = {
    429: {"model": models.Refusal, "description": "Too much work is waiting."},
    **MISSING,
    **LARGE,
}
ASKED = {**MISSING, **LARGE}
OF_CELLS: dict[int | str, dict[str, Any]] = {
    409: {"model": models.Refusal, "description": "The cells of so large a table have to be read first, by `cells`."},
    **ASKED,
}

api = APIRouter(prefix="/api", responses=REFUSALS)
page = APIRouter(include_in_schema=False)


@page.get("/")
def show_page() -> HTMLResponse:
    """The page."""
    return HTMLResponse(render_page())


@page.get("/static/{name}")
def show_static(name: str) -> Response:
    """What the page is made of; plotly.js comes from the installed package."""
    if name not in STATIC:
        raise NotThere("there is no such file")
    package = "plotly.package_data" if name == "plotly.min.js" else "cellrisk.web.page"
    cache_control = "private, max-age=3600" if name == "plotly.min.js" else "no-cache"
    return Response(read_static(package, name), media_type=STATIC[name], headers={"cache-control": cache_control})


@cache
def render_page() -> str:
    from jinja2 import Environment, StrictUndefined

    from cellrisk.system.version import __version__

    template = resources.files("cellrisk.web").joinpath("page", "index.html.j2").read_text("utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(template).render(version=__version__)


@cache
def read_static(package: str, name: str) -> bytes:
    home, _, folder = package.rpartition(".")
    return resources.files(home).joinpath(folder, name).read_bytes()


@api.get("/state")
def show_state(desk: AtDesk) -> models.State:
    """What the server can do."""
    return models.State(**answers.describe_server(desk.settings))


@api.get("/files")
def list_files(desk: AtDesk) -> models.FolderFiles:
    """The CSV and Parquet files below the folder; none where the server was started without one."""
    folder = desk.settings.folder
    found = [] if folder is None else places.list_files(folder)
    return models.FolderFiles(files=[models.FolderFile(path=path, bytes=size) for path, size in found])


@api.post(
    "/uploads",
    responses={**LARGE, 429: QUEUED[429]},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "required": ["file"],
                        "properties": {"file": {"type": "string", "format": "binary"}},
                    }
                }
            },
        }
    },
)
async def upload(request: Request, desk: AtDesk) -> models.Source:
    """Takes a CSV or Parquet file in, streamed to a private folder that is removed when the server ends."""
    origin = await desk.sources.receive(dict(request.headers), request.stream())
    return models.Source(source=origin.id, name=origin.name, bytes=origin.bytes)


@api.post("/sources", responses=LARGE)
def open_source(choice: questions.SourceChoice, desk: AtDesk) -> models.Source:
    """Opens a file of the folder, or the example."""
    if (choice.path is None) == (choice.example is None):
        raise InvalidInput("name a path or an example, one of the two")
    origin = desk.sources.open_example() if choice.path is None else desk.sources.open_file(choice.path)
    return models.Source(source=origin.id, name=origin.name, bytes=origin.bytes)


@api.get(
    "/sources/{source}",
    responses={**MISSING, 429: QUEUED[429], 202: {"model": models.JobTicket, "description": "It is being read."}},
    response_model=models.SourcePreview,
)
async def preview(source: str, desk: AtDesk) -> Any:
    """The columns of a source. Where that takes longer, the answer is a job, to be asked for before asking again."""
    origin = desk.origin(source)
    found = await to_thread.run_sync(desk.look, origin)
    if isinstance(found, Job):
        await to_thread.run_sync(found.ended.wait, SECONDS_FOR_A_PREVIEW)
        if found.state == "failed":
            raise InvalidInput(found.error or "the source cannot be read")
        found = desk.preview(origin) or found
    if not isinstance(found, Preview):
        return _ticket(found)
    described = answers.describe_preview(found)
    return {"source": origin.id, "name": origin.name, "suggested": origin.suggested, **described}


@api.post("/tables", status_code=202, responses=QUEUED)
def make_table(choice: questions.TableChoice, desk: AtDesk) -> models.JobTicket:
    """Counts the cells of a table: a job, whose result is {table: id}."""
    origin = desk.origin(choice.source)
    recipe = Recipe(
        path=str(origin.find()),
        name=origin.name,
        quasi_identifiers=tuple(choice.quasi_identifiers),
        sensitive=tuple(choice.sensitive),
        bins=tuple(choice.bins.items()),
        levels=tuple((name, tuple(labels)) for name, labels in choice.levels.items()),
        missing=choice.missing,
        count=choice.count,
        outside=choice.outside,
    )
    recipe.arguments()
    return models.JobTicket(job=desk.tabulate(origin, recipe).id)


@api.get("/jobs/{job}", responses=MISSING)
def show_job(job: str, desk: AtDesk) -> models.Job:
    """How far a job has got, and its result."""
    return models.Job(**desk.job(job).to_dict())


@api.delete("/jobs/{job}", responses=MISSING)
def cancel_job(job: str, desk: AtDesk) -> models.Job:
    """Cancels a job; one that has ended stays as it is."""
    found = desk.job(job)
    desk.jobs.cancel(found)
    return models.Job(**found.to_dict())


@api.get("/tables/{table}", responses=MISSING)
def show_table(table: str, kept: OfTable, desk: AtDesk) -> models.Table:
    """What a table holds, and what a specialist would say of it."""
    return models.Table(**answers.describe_table(table, kept, desk.preview(kept.origin)))


@api.post("/tables/{table}/positions", status_code=202, responses=QUEUED)
def find_positions(table: str, kept: OfTable, asked: questions.PositionsQuestion, desk: AtDesk) -> models.JobTicket:
    """Every position of the slider: a job, whose result is `Positions`."""
    kept.table.attribute(asked.sensitive)
    arguments = {"table": kept.sent, **asked.model_dump()}
    return models.JobTicket(job=desk.jobs.submit(work.position, arguments, key=_key(table, "positions", asked)).id)


@api.post("/tables/{table}/admissible", responses=ASKED)
def find_admissible(kept: OfTable, asked: questions.Limit, desk: AtDesk) -> models.AdmissibleAnswer:
    """The epsilons that keep a risk within a limit, and every policy that is in force."""
    return models.AdmissibleAnswer(**answers.find_admissible(kept, asked, desk.settings.policy))


@api.post("/tables/{table}/map", status_code=202, responses=QUEUED)
def draw_map(table: str, kept: OfTable, asked: questions.MapQuestion, desk: AtDesk) -> models.JobTicket:
    """Risk and utility along epsilon: a job, whose result is `RiskMap`."""
    kept.table.attribute(asked.sensitive)
    policies = Policies.in_force(desk.settings.policy)
    arguments = {"table": kept.sent, "policy": policies, **asked.model_dump(exclude={"epsilon"})}
    key = (*_key(table, "map", asked), policies.describe())
    return models.JobTicket(job=desk.jobs.submit(work.draw_map, arguments, key=key).id)


@api.post("/tables/{table}/cells", status_code=202, responses=QUEUED)
def read_cells(kept: OfTable, asked: questions.CellsQuestion, desk: AtDesk) -> models.JobTicket:
    """Reads the cells of a large table, which `riskiest` and `glimpse` need: a job, whose result is {cells: number}."""
    return models.JobTicket(job=desk.read_cells(kept, asked.sensitive).id)


@api.post("/tables/{table}/riskiest", responses=OF_CELLS)
def find_riskiest(kept: OfTable, asked: questions.RiskiestQuestion, desk: AtDesk) -> models.Riskiest:
    """The riskiest cells, with their keys: raw data, for the curator."""
    return models.Riskiest(**answers.find_riskiest(kept, desk.cells(kept, asked.sensitive), asked))


@api.post("/tables/{table}/glimpse", responses=OF_CELLS)
def draw_glimpse(kept: OfTable, asked: questions.GlimpseQuestion, desk: AtDesk) -> models.Glimpse:
    """A few cells before and after one simulated release."""
    return models.Glimpse(**answers.draw_glimpse(kept, desk.cells(kept, asked.sensitive), asked))


@api.post("/tables/{table}/compare", status_code=202, responses=QUEUED)
def compare(table: str, kept: OfTable, asked: questions.CompareQuestion, desk: AtDesk) -> models.JobTicket:
    """Two settings side by side: a job, whose result is `Comparison`."""
    kept.table.attribute(asked.sensitive)
    arguments = {"table": kept.sent, "recipe": kept.recipe, **asked.model_dump()}
    return models.JobTicket(job=desk.jobs.submit(work.compare, arguments, key=_key(table, "compare", asked)).id)


@api.post("/tables/{table}/commands", responses=ASKED)
def show_commands(kept: OfTable, asked: questions.AtEpsilon) -> models.Commands:
    """The command line and the Python code that give the same result."""
    name = kept.table.attribute(asked.sensitive).name
    settle(asked.mechanism, asked.epsilon, asked.delta, asked.neighbours, kept.table.n_records)
    found = write_commands(kept.recipe, kept.origin.command, asked, name, kept.table.n_records)
    return models.Commands(**found)


@api.post("/tables/{table}/downloads", status_code=202, responses=QUEUED)
def make_download(kept: OfTable, asked: questions.DownloadQuestion, desk: AtDesk) -> models.JobTicket:
    """A report, a curve or a release: a job, whose result is `Download`."""
    table = kept.table
    mechanism = settle(asked.mechanism, asked.epsilon, asked.delta, asked.neighbours, table.n_records)
    arguments: dict[str, Any] = {
        "table": kept.sent,
        "recipe": kept.recipe,
        "sensitive": table.attribute(asked.sensitive).name,
    }
    told = say_delta(asked.mechanism, asked.delta, table.n_records)
    if asked.kind == "release":
        arguments |= {"mechanism": mechanism, "policy": desk.settings.policy, "disclosures": told}
        arguments |= asked.model_dump(include=RELEASE_FIELDS)
        if desk.settings.ledger is not None:
            if not (asked.purpose and asked.cohort):
                raise InvalidInput("the ledger needs to know why this is released, and about whom", fix="say both")
            where = {"place": desk.settings.ledger, "kept": str(desk.settings.releases)}
            arguments["entry"] = {**where, **asked.model_dump(include=ENTRY_FIELDS)}
        return models.JobTicket(job=desk.write(work.write_release, arguments).id)
    arguments |= {"mechanism": asked.mechanism, "neighbours": asked.neighbours}
    arguments |= {"delta": settle_delta(asked.mechanism, asked.delta, table.n_records) or None}
    if asked.kind == "report":
        arguments |= {"policy": desk.settings.policy, "disclosures": told if asked.public else []}
        arguments |= asked.model_dump(include=REPORT_FIELDS)
        return models.JobTicket(job=desk.write(work.write_report, arguments).id)
    arguments |= {"kind": asked.kind, "measures": [asked.measure], "spreadsheet_safe": asked.spreadsheet_safe}
    return models.JobTicket(job=desk.write(work.write_curve, arguments).id)


REPORT_FIELDS = {"epsilon", "measure", "form", "weights", "max_risk", "public", "title", "organisation"}
ENTRY_FIELDS = {"purpose", "cohort", "new_cohort", "part_of"}
RELEASE_FIELDS = {"observed_levels", "observed_cells_only", "clamp", "may_be_missing", "ending", "spreadsheet_safe"}


@api.get(
    "/downloads/{download}",
    responses={**MISSING, 200: {"content": {"application/octet-stream": {}}, "description": "The file."}},
    response_class=FileResponse,
)
def fetch_download(download: str, desk: AtDesk) -> FileResponse:
    """The file itself."""
    path: Path = desk.download(download)
    return FileResponse(path, filename=path.name, media_type="application/octet-stream")


@api.get("/ledger", responses=MISSING)
def show_ledger(desk: AtDesk) -> models.LedgerAnswer:
    """What was released so far, and what it has cost."""
    if desk.settings.ledger is None:
        raise NotThere("no ledger was named when the server was started", fix="start it with --ledger FILE")
    return models.LedgerAnswer(**answers.describe_ledger(desk.settings.ledger))


def _ticket(job: Job) -> JSONResponse:
    return JSONResponse({"job": job.id}, status_code=202)


def _key(table: str, what: str, asked: models.Model) -> tuple[str, str, str]:
    return table, what, asked.model_dump_json()
