"""The API, about tables, perturbations and sets of tables; and the two pages that ask it."""

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
from cellrisk.risk.explanation.risky_cells import CellRisks
from cellrisk.web import answer_models, answers, folder_files, perturbations, request_models, set_work, work
from cellrisk.web.boxes import in_words_of_boxes
from cellrisk.web.commands import write_commands, write_perturbed_commands, write_set_commands
from cellrisk.web.jobs import Job
from cellrisk.web.perturbations import GivenPerturbation, read_given
from cellrisk.web.recipes import Recipe, find_delta, say_delta
from cellrisk.web.workspace import LoadedTable, NotThere, Workspace

SECONDS_FOR_AN_ANSWER = 1.5
"""What is ready so soon is the answer; else the answer is its job."""
KINDS = {".css": "text/css", ".js": "text/javascript"}
STATIC = {
    entry.name: KINDS[Path(entry.name).suffix]
    for entry in resources.files("cellrisk.web").joinpath("page").iterdir()
    if Path(entry.name).suffix in KINDS
}


def find_workspace(request: Request) -> Workspace:
    workspace: Workspace = request.app.state.workspace
    return workspace


def find_table(table: str, workspace: Annotated[Workspace, Depends(find_workspace)]) -> LoadedTable:
    return workspace.table(table)


InWorkspace = Annotated[Workspace, Depends(find_workspace)]
OfTable = Annotated[LoadedTable, Depends(find_table)]

Responses = dict[int | str, dict[str, Any]]


def refusals(descriptions: dict[int, str]) -> Responses:
    """What the OpenAPI document says of statuses that refuse."""
    return {status: {"model": answer_models.Refusal, "description": told} for status, told in descriptions.items()}


REFUSALS = refusals(
    {
        400: "The request cannot be read, or names another host.",
        401: "The cookie is missing.",
        403: "The request comes from another site.",
        422: "A value or combination that cannot give a right answer.",
    }
)
MISSING = refusals({404: "It is not there."})
LARGE = refusals({413: "The request is too large."})
BUSY = refusals({429: "Too much work is waiting."})
ASKED = {**MISSING, **LARGE}
QUEUED = {**BUSY, **ASKED}
LATER: Responses = {202: {"model": answer_models.JobTicket, "description": "It takes longer: follow the job."}}
SOON = {**QUEUED, **LATER}
OF_CELLS = {**refusals({409: "The cells of so large a table have to be read first, by `cells`."}), **ASKED}

api = APIRouter(prefix="/api", responses=REFUSALS)
page = APIRouter(include_in_schema=False)


@page.get("/")
def show_page() -> HTMLResponse:
    """The page."""
    return HTMLResponse(render("index.html.j2"))


@page.get("/static/{name}")
def show_static(name: str) -> Response:
    """What the page is made of."""
    if name not in STATIC:
        raise NotThere("there is no such file")
    return Response(read_static(name), media_type=STATIC[name], headers={"cache-control": "no-cache"})


@cache
def render(page: str) -> str:
    """A page from its template."""
    from jinja2 import Environment, StrictUndefined

    from cellrisk.system.version import __version__

    template = resources.files("cellrisk.web").joinpath("page", page).read_text("utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(template).render(version=__version__)


@cache
def read_static(name: str) -> bytes:
    return resources.files("cellrisk.web").joinpath("page", name).read_bytes()


@api.get("/state")
def show_state(workspace: InWorkspace) -> answer_models.State:
    """What the server can do."""
    return answers.describe_server(workspace.settings)


@api.get("/files")
def list_files(workspace: InWorkspace) -> answer_models.FolderFiles:
    """The CSV and Parquet files below the folder; none where the server was started without one."""
    folder = workspace.settings.folder
    found = [] if folder is None else folder_files.list_files(folder)
    return answer_models.FolderFiles(files=[answer_models.FolderFile(path=path, bytes=size) for path, size in found])


@api.post(
    "/uploads",
    responses={**LARGE, **BUSY},
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
async def upload(request: Request, workspace: InWorkspace) -> answer_models.Source:
    """Takes a CSV or Parquet file in, streamed to a private folder that is removed when the server ends."""
    return answers.describe_source(await workspace.sources.receive(dict(request.headers), request.stream()))


@api.post("/sources", responses=LARGE)
def open_source(choice: request_models.SourceChoice, workspace: InWorkspace) -> answer_models.Source:
    """Opens a file of the folder, or the example."""
    if (choice.path is None) == (choice.example is None):
        raise InvalidInput("name a path or an example, one of the two")
    origin = workspace.sources.open_example() if choice.path is None else workspace.sources.open_file(choice.path)
    return answers.describe_source(origin)


@api.get(
    "/sources/{source}",
    responses={**MISSING, **BUSY, 202: {**LATER[202], "description": "It is being read."}},
    response_model=answer_models.SourcePreview,
)
async def preview(source: str, workspace: InWorkspace) -> Any:
    """The columns of a source. Where that takes longer, the answer is a job, to be asked for before asking again."""
    origin = workspace.origin(source)
    found = await to_thread.run_sync(workspace.look, origin)
    if isinstance(found, Job):
        await to_thread.run_sync(found.ended.wait, SECONDS_FOR_AN_ANSWER)
        if found.state == "failed":
            raise InvalidInput(found.error or "the source cannot be read")
        found = workspace.preview(origin) or found
    if not isinstance(found, Preview):
        return JSONResponse({"job": found.id}, status_code=202)
    return answers.describe_preview(origin, found)


@api.post("/tables", status_code=202, responses=QUEUED)
def make_table(choice: request_models.TableChoice, workspace: InWorkspace) -> answer_models.JobTicket:
    """Counts the cells of a table: a job, whose result is {table: id}."""
    origin = workspace.origin(choice.source)
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
    return ticket(workspace.tabulate(origin, recipe))


@api.get("/jobs/{job}", responses=MISSING)
def show_job(job: str, workspace: InWorkspace) -> answer_models.Job:
    """How far a job has got, and its result."""
    return answers.describe_job(workspace.job(job))


@api.delete("/jobs/{job}", responses=MISSING)
def cancel_job(job: str, workspace: InWorkspace) -> answer_models.Job:
    """Cancels a job; one that has ended stays as it is."""
    found = workspace.job(job)
    workspace.jobs.cancel(found)
    return answers.describe_job(found)


@api.get("/tables/{table}", responses=MISSING)
def show_table(loaded: OfTable, workspace: InWorkspace) -> answer_models.Table:
    """What a table holds, and what a specialist would say of it."""
    return answers.describe_table(loaded, workspace.preview(loaded.origin))


@api.post("/tables/{table}/positions", status_code=202, responses=QUEUED)
def find_positions(
    table: str, loaded: OfTable, asked: request_models.PositionsRequest, workspace: InWorkspace
) -> answer_models.JobTicket:
    """Every position of the slider: a job, whose result is `Positions`."""
    loaded.table.attribute(asked.sensitive)
    arguments = {"table": loaded.sent, **asked.model_dump()}
    return ticket(workspace.jobs.submit(work.position, arguments, key=_key(table, "positions", asked)))


@api.post("/tables/{table}/certainty", status_code=202, responses=QUEUED)
def trace_certainty(
    table: str, loaded: OfTable, asked: request_models.CertaintyRequest, workspace: InWorkspace
) -> answer_models.JobTicket:
    """What an attacker can be sure of along epsilon: a job, whose result is `CertaintyLine`."""
    loaded.table.attribute(asked.sensitive)
    arguments = {"table": loaded.tabulated.table, **asked.model_dump()}
    return ticket(workspace.jobs.submit(work.trace_certainty, arguments, key=_key(table, "certainty", asked)))


@api.post("/tables/{table}/figures", responses=SOON, response_model=answer_models.Figures)
async def find_figures(
    table: str, loaded: OfTable, asked: request_models.EpsilonRequest, workspace: InWorkspace
) -> Any:
    """The figures to decide by at one epsilon, with their intervals. Where that takes longer, the answer is a job."""
    arguments = {
        "table": loaded.tabulated.table,
        "sensitive": loaded.table.attribute(asked.sensitive).name,
        "mechanism": answers.read_mechanism(loaded, asked),
    }
    key = table, "figures", arguments["sensitive"], arguments["mechanism"]
    return await answer_soon(workspace.jobs.submit(work.find_figures, arguments, key=key), answer_models.Figures)


@api.post("/tables/{table}/admissible", responses=SOON, response_model=answer_models.AdmissibleAnswer)
async def find_admissible(
    table: str, loaded: OfTable, asked: request_models.MechanismRequest, workspace: InWorkspace
) -> Any:
    """The epsilons that keep the limits, and every policy that is in force. What takes longer is a job."""
    loaded.table.attribute(asked.sensitive)
    policies = Policies.in_force(workspace.settings.policy)
    arguments = {"table": loaded.tabulated.table, "policy": policies, **asked.model_dump(exclude={"epsilon"})}
    key = (table, "admissible", asked.model_dump_json(exclude={"epsilon"}), policies.describe())
    job = workspace.jobs.submit(work.find_admissible, arguments, key=key)
    return await answer_soon(job, answer_models.AdmissibleAnswer)


@api.post("/tables/{table}/consequences", responses=ASKED)
def tell_consequences(
    loaded: OfTable, asked: request_models.DownloadRequest, workspace: InWorkspace
) -> answer_models.Consequences:
    """What has to be known before a release is made: limits that it breaks, what its guarantee leaves out, its cost."""
    return answers.tell_consequences(loaded, asked, workspace.settings)


@api.post("/tables/{table}/map", status_code=202, responses=QUEUED)
def draw_map(
    table: str, loaded: OfTable, asked: request_models.MapRequest, workspace: InWorkspace
) -> answer_models.JobTicket:
    """Risk and utility along epsilon: a job, whose result is `RiskMap`."""
    loaded.table.attribute(asked.sensitive)
    policies = Policies.in_force(workspace.settings.policy)
    arguments = {"table": loaded.sent, "policy": policies, **asked.model_dump(exclude={"epsilon"})}
    key = (*_key(table, "map", asked), policies.describe())
    return ticket(workspace.jobs.submit(work.draw_map, arguments, key=key))


@api.post("/tables/{table}/cells", status_code=202, responses=QUEUED)
def read_cells(loaded: OfTable, asked: request_models.CellsRequest, workspace: InWorkspace) -> answer_models.JobTicket:
    """Reads the cells of a large table, which `riskiest` and `glimpse` need: a job, whose result is {cells: number}."""
    return ticket(workspace.read_cells(loaded, asked.sensitive))


@api.post("/tables/{table}/riskiest", responses=OF_CELLS)
def find_riskiest(
    loaded: OfTable, asked: request_models.RiskiestRequest, workspace: InWorkspace
) -> answer_models.Riskiest:
    """The riskiest cells, with their keys: raw data, for the curator."""
    return answers.find_riskiest(loaded, workspace.cells(loaded, asked.sensitive), asked)


@api.post("/tables/{table}/glimpse", responses=OF_CELLS)
def draw_glimpse(
    loaded: OfTable, asked: request_models.GlimpseRequest, workspace: InWorkspace
) -> answer_models.Glimpse:
    """A few cells before and after one simulated release."""
    return answers.draw_glimpse(loaded, workspace.cells(loaded, asked.sensitive), asked)


@api.post("/tables/{table}/compare", status_code=202, responses=QUEUED)
def compare(
    table: str, loaded: OfTable, asked: request_models.CompareRequest, workspace: InWorkspace
) -> answer_models.JobTicket:
    """Two settings side by side: a job, whose result is `ComparisonAnswer`."""
    loaded.table.attribute(asked.sensitive)
    arguments = {"table": loaded.sent, "recipe": loaded.recipe, **asked.model_dump()}
    return ticket(workspace.jobs.submit(work.compare, arguments, key=_key(table, "compare", asked)))


@api.post("/tables/{table}/commands", responses=ASKED)
def show_commands(loaded: OfTable, asked: request_models.EpsilonRequest) -> answer_models.Commands:
    """The command line and the Python code that give the same result."""
    name = loaded.table.attribute(asked.sensitive).name
    answers.read_mechanism(loaded, asked)
    return write_commands(loaded.recipe, loaded.origin.command, asked, name, loaded.table.n_records)


@api.post("/tables/{table}/downloads", status_code=202, responses=QUEUED)
def make_download(
    loaded: OfTable, asked: request_models.DownloadRequest, workspace: InWorkspace
) -> answer_models.JobTicket:
    """A report, a curve or a release: a job, whose result is `Download`."""
    table = loaded.table
    mechanism = answers.read_mechanism(loaded, asked)
    arguments: dict[str, Any] = {
        "table": loaded.sent,
        "recipe": loaded.recipe,
        "sensitive": table.attribute(asked.sensitive).name,
    }
    told = say_delta(asked.mechanism, asked.delta, table.n_records)
    if asked.kind == "release":
        arguments |= {"mechanism": mechanism, "policy": workspace.settings.policy, "disclosures": told}
        arguments |= asked.model_dump(include=RELEASE_FIELDS)
        if workspace.settings.ledger is not None:
            if not (asked.purpose and asked.cohort):
                raise InvalidInput("the ledger needs to know why this is released, and about whom", fix="say both")
            where = {"place": workspace.settings.ledger, "releases": str(workspace.settings.releases)}
            arguments["entry"] = {**where, **asked.model_dump(include=ENTRY_FIELDS)}
        return ticket(workspace.write(work.write_release, arguments))
    arguments |= {"mechanism": asked.mechanism, "neighbours": asked.neighbours}
    arguments |= {"delta": find_delta(asked.mechanism, asked.delta, table.n_records) or None}
    if asked.kind == "report":
        arguments |= {"policy": workspace.settings.policy, "disclosures": told if asked.public else []}
        arguments |= asked.model_dump(include=REPORT_FIELDS)
        return ticket(workspace.write(work.write_report, arguments))
    arguments |= {"kind": asked.kind, "measures": [asked.measure], "spreadsheet_safe": asked.spreadsheet_safe}
    return ticket(workspace.write(work.write_curve, arguments))


REPORT_FIELDS = {"epsilon", "measure", "form", "weights", "public", "title", "organisation", *request_models.LIMITS}
ENTRY_FIELDS = {"purpose", "cohort", "new_cohort", "part_of"}
RELEASE_FIELDS = {"observed_levels", "observed_cells_only", "clamp", "may_be_missing", "ending", "spreadsheet_safe"}


@api.get(
    "/downloads/{download}",
    responses={**MISSING, 200: {"content": {"application/octet-stream": {}}, "description": "The file."}},
    response_class=FileResponse,
)
def fetch_download(download: str, workspace: InWorkspace) -> FileResponse:
    """The file itself."""
    path: Path = workspace.download(download)
    return FileResponse(path, filename=path.name, media_type="application/octet-stream")


@api.get("/ledger", responses=MISSING)
def show_ledger(workspace: InWorkspace) -> answer_models.LedgerAnswer:
    """What was released so far, and what it has cost."""
    if workspace.settings.ledger is None:
        raise NotThere("no ledger was named when the server was started", fix="start it with --ledger FILE")
    return answers.describe_ledger(workspace.settings.ledger)


def find_given(asked: request_models.PerturbedRequest, workspace: Workspace) -> GivenPerturbation:
    """The perturbation that a request names."""
    if asked.uploaded is None:
        return GivenPerturbation(asked.rule, suppress_below=asked.suppress_below)
    origin = workspace.sources.find(asked.uploaded)
    if origin is None or origin.kind != "upload":
        raise NotThere("the table P(m -> r) is no longer there", fix="upload it again")
    return GivenPerturbation(asked.rule, str(origin.find()), origin.name, asked.suppress_below)


@api.post("/tables/{table}/perturbed", responses=SOON, response_model=answer_models.PerturbedAnswer)
async def assess_perturbed(
    table: str, loaded: OfTable, asked: request_models.PerturbedRequest, workspace: InWorkspace
) -> Any:
    """What a perturbation gives away, as `cellrisk assess --perturbation` tells it. What takes longer is a job."""
    given = find_given(asked, workspace)
    name = loaded.table.attribute(asked.sensitive).name
    policies = Policies.in_force(workspace.settings.policy)
    records = loaded.table.n_records
    commands = write_perturbed_commands(loaded.recipe, loaded.origin.command, given.written, asked, name, records)
    arguments: dict[str, Any] = {
        "table": loaded.tabulated.table,
        "given": given,
        "policy": policies,
        "commands": commands.model_dump(),
        **asked.model_dump(exclude={"rule", "uploaded", "suppress_below"}),
        "sensitive": name,
    }
    key = (table, "perturbed", asked.model_dump_json(), policies.describe())
    job = workspace.jobs.submit(perturbations.assess_given, arguments, key=key)
    return await answer_soon(job, answer_models.PerturbedAnswer)


@api.post("/tables/{table}/perturbed/riskiest", responses=OF_CELLS)
def find_perturbed_cells(
    loaded: OfTable, asked: request_models.PerturbedCellsRequest, workspace: InWorkspace
) -> answer_models.Riskiest:
    """The riskiest cells under a perturbation, with their keys: raw data, for the curator."""
    cells = workspace.cells(loaded, asked.sensitive)
    made = read_given(find_given(asked, workspace))
    made.check_reach(int(cells.count.max()))
    risks = CellRisks.at(made, cells, "tight")
    return answer_models.Riskiest(columns=list(cells.names), rows=list(risks.riskiest(asked.top)))


@api.post("/tables/{table}/perturbed/report", status_code=202, responses=QUEUED)
def report_perturbed(
    loaded: OfTable, asked: request_models.PerturbedReportRequest, workspace: InWorkspace
) -> answer_models.JobTicket:
    """The report on a perturbation: a job, whose result is `Download`."""
    arguments: dict[str, Any] = {
        "table": loaded.sent,
        "recipe": loaded.recipe,
        "given": find_given(asked, workspace),
        "policy": workspace.settings.policy,
        **asked.model_dump(exclude={"rule", "uploaded", "suppress_below"}),
        "sensitive": loaded.table.attribute(asked.sensitive).name,
    }
    return ticket(workspace.write(perturbations.report_given, arguments))


@page.get("/sets")
def show_sets_page() -> HTMLResponse:
    """The page of sets."""
    return HTMLResponse(render("sets.html.j2"))


@api.post("/sets/read", responses={**LARGE, **BUSY, **LATER}, response_model=answer_models.SetRead)
async def read_set(asked: request_models.SetText, workspace: InWorkspace) -> Any:
    """What a set file holds, for the boxes of the page. The source that it names is not opened."""
    job = workspace.jobs.submit(set_work.read_set, asked.model_dump())
    return await answer_soon(job, answer_models.SetRead)


@api.post("/sources/{source}/set", status_code=202, responses=QUEUED)
def assess_set(source: str, choice: request_models.SetChoice, workspace: InWorkspace) -> answer_models.JobTicket:
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
    return ticket(workspace.jobs.submit(set_work.assess_set, arguments, key=key))


@api.post("/sources/{source}/set/commands", responses=ASKED)
def show_set_commands(
    source: str, choice: request_models.SetChoice, workspace: InWorkspace
) -> answer_models.SetCommands:
    """The set file, the command line and the Python code that give the same result."""
    origin = workspace.origin(source)
    with in_words_of_boxes():
        return write_set_commands(choice, origin.command)


def ticket(job: Job) -> answer_models.JobTicket:
    return answer_models.JobTicket(job=job.id)


async def answer_soon(job: Job, kind: type[answer_models.Model]) -> Any:
    """The result of a job that ends within moments; else the job itself, to be followed."""
    await to_thread.run_sync(job.ended.wait, SECONDS_FOR_AN_ANSWER)
    if job.state == "failed":
        raise InvalidInput(job.error or "the work failed")
    if job.state == "done":
        return kind.model_validate(job.result)
    return JSONResponse({"job": job.id}, status_code=202)


def _key(table: str, what: str, asked: answer_models.Model) -> tuple[str, str, str]:
    return table, what, asked.model_dump_json()
