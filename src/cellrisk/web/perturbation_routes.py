"""The part of the API that is about perturbations, which have no epsilon."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from cellrisk.decide.policies import Policies
from cellrisk.risk.explanation.risky_cells import CellRisks
from cellrisk.web import answer_models, perturbations, request_models, routes
from cellrisk.web.commands import write_perturbed_commands
from cellrisk.web.perturbations import GivenPerturbation, read_given
from cellrisk.web.workspace import NotThere, Workspace

api = APIRouter(prefix="/api", responses=routes.REFUSALS)


def find_given(asked: request_models.PerturbedRequest, workspace: Workspace) -> GivenPerturbation:
    """The perturbation that a request names."""
    if asked.uploaded is None:
        return GivenPerturbation(asked.rule, suppress_below=asked.suppress_below)
    origin = workspace.sources.find(asked.uploaded)
    if origin is None or origin.kind != "upload":
        raise NotThere("the table P(m -> r) is no longer there", fix="upload it again")
    return GivenPerturbation(asked.rule, str(origin.find()), origin.name, asked.suppress_below)


@api.post("/tables/{table}/perturbed", responses=routes.SOON, response_model=answer_models.PerturbedAnswer)
async def assess_perturbed(
    table: str, loaded: routes.OfTable, asked: request_models.PerturbedRequest, workspace: routes.InWorkspace
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
    return await routes.answer_soon(job, answer_models.PerturbedAnswer)


@api.post("/tables/{table}/perturbed/riskiest", responses=routes.OF_CELLS)
def find_perturbed_cells(
    loaded: routes.OfTable, asked: request_models.PerturbedCellsRequest, workspace: routes.InWorkspace
) -> answer_models.Riskiest:
    """The riskiest cells under a perturbation, with their keys: raw data, for the curator."""
    cells = workspace.cells(loaded, asked.sensitive)
    made = read_given(find_given(asked, workspace))
    made.check_reach(int(cells.count.max()))
    risks = CellRisks.at(made, cells, "tight")
    return answer_models.Riskiest(columns=list(cells.names), rows=list(risks.riskiest(asked.top)))


@api.post("/tables/{table}/perturbed/report", status_code=202, responses=routes.QUEUED)
def report_perturbed(
    loaded: routes.OfTable, asked: request_models.PerturbedReportRequest, workspace: routes.InWorkspace
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
    return routes.ticket(workspace.write(perturbations.report_given, arguments))
