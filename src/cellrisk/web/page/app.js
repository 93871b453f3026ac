// The page of cellrisk: it asks the server, shows what comes back, and computes no risk itself. It starts here.
import { askForRelease, downloadReport, release, showLedger } from "./act.js";
import { copyCode, openers, showFiles, watchDrops, watchElements, watchTheme } from "./both.js";
import { redrawCharts } from "./charts.js";
import { changeLimits, loadMap, showLocks, showRiskiest } from "./decide.js";
import { at, later, setOptions } from "./elements.js";
import { countTable, loadSource, restore, showPeople, takeFile } from "./load.js";
import { changeHarmful, loadPositions, showPosition, showRow, useAdmissible, useSensitive } from "./see.js";
import { ask, work } from "./server.js";
import { LIMITS, page, writeAddress } from "./state.js";
import { openStep, watchSteps } from "./steps.js";

const each = (ids, action) => Object.fromEntries(ids.map((id) => [id, action]));

function watchControls() {
  watchElements({
    change: { ...each(["mechanism", "measure", "neighbours"], loadPositions), sensitive: useSensitive, harmful: changeHarmful,
      ...each(["weights", "delta", "form"], showRow), top: showRiskiest, several: showPeople,
      file: (event) => takeFile(event.target.files[0]) },
    click: { ...openers(loadSource), "count-table": () => countTable(), "use-epsilon": useAdmissible,
      "draw-map": loadMap, report: downloadReport, "copy-shell": copyCode },
    input: { epsilon: showPosition, ...each(LIMITS.map(({ id }) => id), changeLimits) },
    toggle: { "riskiest-details": showRiskiest },
    submit: { "release-form": askForRelease },
    close: { confirm: release },
  });
  const note = () => { if (page.source && !page.counting) writeAddress(); };
  at("main").addEventListener("change", note);
  at("columns-area").addEventListener("input", note); // at once: a reload keeps what was typed
  at("main").addEventListener("input", () => later("address", 200, note));
  for (const details of document.querySelectorAll("details")) details.addEventListener("toggle", redrawCharts);
  addEventListener("resize", () => later("resize", 60, redrawCharts));
  addEventListener("popstate", restore);
}

function showServer() {
  for (const [id, options] of Object.entries(page.server.choices)) setOptions(at(id), options);
  [at("mechanism").value, at("form").value, at("weights").value] = ["geometric", "tight", "records"];
  at("ledger-fields").hidden = !page.server.ledger;
  showLocks();
}

async function start() {
  watchTheme();
  watchControls();
  watchDrops(takeFile);
  watchSteps();
  openStep("load", { how: null, focus: false });
  page.server = await work(at("load-status"), null, () => ask("GET", "/api/state"));
  if (!page.server) return;
  showServer();
  if (page.server.folder) showFiles();
  showLedger();
  restore();
}

document.addEventListener("DOMContentLoaded", start);
