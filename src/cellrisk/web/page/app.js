// The page of cellrisk: it asks the server, shows what comes back, and computes no risk itself. It starts here.
import { askForRelease, copyCode, download, downloadReport, release } from "./act.js";
import { showGlimpse, showRiskiest } from "./cells.js";
import { placeOverlays, redrawCharts } from "./charts.js";
import { compareSettings } from "./compare.js";
import { checkLimit, dragLimit, loadMap, moveLimitByKey, typeLimit } from "./decide.js";
import { at, setOptions } from "./elements.js";
import { showLedger } from "./ledger.js";
import { countTable, loadSource, showFiles, upload } from "./load.js";
import { loadPositions, showPosition, showRow, useAdmissible } from "./see.js";
import { ask, work } from "./server.js";
import { named, page } from "./state.js";
import { watchSteps } from "./steps.js";

function chooseTheme() {
  localStorage.setItem("cellrisk-theme", at("theme").value);
  document.documentElement.dataset.theme = at("theme").value;
  redrawCharts();
}

function watchDrops() {
  const zone = at("drop");
  for (const name of ["dragenter", "dragover"]) zone.addEventListener(name, () => zone.classList.add("over"));
  for (const name of ["dragleave", "drop"]) zone.addEventListener(name, () => zone.classList.remove("over"));
  for (const name of ["dragover", "drop"]) window.addEventListener(name, (event) => event.preventDefault());
  window.addEventListener("drop", (event) => upload(event.dataTransfer.files[0]));
}

function watchControls() {
  const actions = {
    change: { theme: chooseTheme, sensitive: loadPositions, mechanism: loadPositions, measure: loadPositions, neighbours: loadPositions,
      weights: showRow, delta: showRow, form: () => { placeOverlays(); checkLimit(); }, top: showRiskiest,
      file: (event) => upload(event.target.files[0]) },
    click: { "try-adult": () => loadSource("Reading the example", () => ask("POST", "/api/sources", { example: "adult" })),
      "open-file": () => loadSource("Reading the file", () => ask("POST", "/api/sources", { path: at("folder-file").value })),
      "count-table": countTable, "draw-again": () => { page.seed += 1; showGlimpse(); }, "use-epsilon": useAdmissible,
      "draw-map": loadMap, compare: compareSettings, report: downloadReport,
      "curve-csv": () => download("curve.csv", at("download-status"), "Writing the curve"),
      "curve-svg": () => download("curve.svg", at("download-status"), "Writing the curve"), "copy-shell": copyCode, "copy-python": copyCode },
    input: { epsilon: showPosition, "max-risk": typeLimit },
    pointerdown: { "limit-handle": (event) => event.currentTarget.setPointerCapture(event.pointerId) },
    pointermove: { "limit-handle": dragLimit },
    keydown: { "limit-handle": moveLimitByKey },
    submit: { "release-form": askForRelease },
    close: { confirm: release },
  };
  for (const [name, byElement] of Object.entries(actions)) {
    for (const [id, action] of Object.entries(byElement)) at(id).addEventListener(name, action);
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawCharts);
}

const MISSING = { category: "are a value of their own", drop: "drop the row", error: "refuse the file" };

function showServer() {
  setOptions(at("missing"), page.server.missing.map((rule) => [rule, MISSING[rule] ?? rule]), "category");
  const lists = { mechanism: "mechanisms", measure: "measures", form: "forms", weights: "weights", neighbours: "neighbours" };
  for (const [id, list] of Object.entries(lists)) setOptions(at(id), named(list));
  [at("mechanism").value, at("form").value, at("weights").value] = ["geometric", "tight", "records"];
  at("ledger-fields").hidden = !page.server.ledger;
}

async function start() {
  at("theme").value = localStorage.getItem("cellrisk-theme") ?? "";
  watchControls();
  watchDrops();
  watchSteps();
  page.server = await work(at("load-status"), null, () => ask("GET", "/api/state"));
  if (!page.server) return;
  showServer();
  if (page.server.folder) showFiles();
  showLedger();
}

document.addEventListener("DOMContentLoaded", start);
