// Step 1: a file is loaded, its columns get a meaning, and the table is counted.
import { forgetCharts } from "./charts.js";
import { showCompareFields } from "./compare.js";
import { announce, at, make, setFigures, setOptions, showError, stopWaiting, write } from "./elements.js";
import { count, percent, size } from "./numbers.js";
import { loadPositions } from "./see.js";
import { ask, endTurns, follow, work } from "./server.js";
import { page } from "./state.js";
import { markSteps } from "./steps.js";

export async function showFiles() {
  const answer = await work(at("folder-status"), null, () => ask("GET", "/api/files"));
  if (!answer) return;
  setOptions(at("folder-file"), answer.files.map(({ path, bytes }) => [path, `${path} (${size(bytes)})`]));
  at("folder-way").hidden = answer.files.length === 0;
}

export function upload(file) {
  const limit = page.server?.upload_limit ?? Infinity;
  at("file").value = "";
  if (!file) return;
  const form = new FormData();
  form.append("file", file);
  if (file.size <= limit) loadSource(`Reading ${file.name}`, (turn, report) => ask("POST", "/api/uploads", form, turn, report));
  else showError(at("load-status"), new Error(`The file has ${size(file.size)}; at most ${size(limit)} can be uploaded.`));
}

export async function loadSource(words, begin) {
  forgetTable();
  at("columns-area").hidden = true;
  const source = await work(at("load-status"), words, async (turn, report) => {
    const { source: id } = await begin(turn, report);
    for (;;) {
      const preview = await ask("GET", `/api/sources/${id}`);
      if (preview.columns) return preview;
      await follow(preview.job, turn, report);
    }
  });
  if (source) showColumns(source);
}

function showColumns(source) {
  page.source = source;
  const { quasi_identifiers: keys = [], sensitive = [], bins = {} } = source.suggested ?? {};
  const roleOf = (name) => (keys.includes(name) ? "qid" : sensitive.includes(name) ? "sensitive" : "unused");
  const numbers = source.columns.filter((column) => column.kind === "number");
  write("source-title", `${source.name}: ${count(source.rows)} rows, ${source.columns.length} columns`);
  const rows = source.columns.map((column, place) => makeColumnRow(column, place, roleOf(column.name), bins[column.name]));
  at("columns").tBodies[0].replaceChildren(...rows);
  setOptions(at("count"), [["", "one person"], ["people", "one person, though rows look like counts"],
    ...numbers.map(({ name }) => [`in ${name}`, `a cell, counted in ${name}`])], "");
  at("columns-area").hidden = false;
  at("source-title").focus();
}

const ROLES = [["qid", "Quasi-identifier"], ["sensitive", "Sensitive"], ["unused", "Not used"]];

function makeColumnRow(column, place, role, bins) {
  const markRow = (event) => { row.className = event.target.value; };
  const radio = ([value, words]) => make("td", { class: "mid pick" }, make("label", {}, make("input", { type: "radio", name: `role-${place}`, value,
    checked: value === role, "aria-label": `${column.name}: ${words}`, change: markRow }), make("span", {}, words)));
  const field = column.kind !== "number" ? make("span", { class: "quiet" }, "–") : make("input", { type: "text", class: "bins", value: bins ?? "",
    placeholder: "5 or 0/18/65", "aria-label": `Bins of ${column.name}: a width, or edges between slashes` });
  const row = make("tr", { class: role, "data-column": column.name },
    make("th", { scope: "row" }, column.name, column.hint ? make("span", { class: "hint" }, column.hint) : null),
    make("td", { "data-label": "Type" }, column.kind === "truth" ? "yes or no" : column.kind),
    make("td", { class: "right", "data-label": "Levels" }, column.levels === null ? "over 10,000" : count(column.levels)),
    make("td", { class: "right", "data-label": "Missing" }, count(column.missing)),
    ...ROLES.map(radio), make("td", { "data-label": "Bins" }, field));
  return row;
}

// What each row is: nothing said, a person whatever it looks like, or a cell with its count in a column.
function readCount(chosen) {
  return chosen === "" ? null : chosen === "people" ? false : chosen.slice("in ".length);
}

function chosenTable() {
  const rows = [...at("columns").tBodies[0].rows];
  const columnsOf = (role) => rows.filter((row) => row.className === role).map((row) => row.dataset.column);
  const bins = rows.filter((row) => row.className === "qid").map((row) => [row.dataset.column, row.querySelector(".bins")?.value.trim()]);
  return { source: page.source.source, quasi_identifiers: columnsOf("qid"), sensitive: columnsOf("sensitive"),
    bins: Object.fromEntries(bins.filter(([, edges]) => edges)), missing: at("missing").value, count: readCount(at("count").value) };
}

function forgetTable() {
  endTurns();
  stopWaiting();
  Object.assign(page, { table: null, keyed: null, positions: null, shown: null, limit: null, admissible: null, map: null, compared: null, riskiest: null });
  page.shipped.clear();
  forgetCharts();
  for (const id of ["table-area", "see", "see-area", "decide", "act", "map-area", "compare-area"]) at(id).hidden = true;
  for (const status of document.querySelectorAll("main .status:not(#ledger-status)")) status.replaceChildren();
  markSteps();
}

export async function countTable() {
  const chosen = chosenTable();
  forgetTable();
  if (!chosen.quasi_identifiers.length || !chosen.sensitive.length) {
    return showError(at("count-status"), new Error("Choose at least one quasi-identifier and one sensitive column."));
  }
  const table = await work(at("count-status"), "Counting the table", async (turn, report) => {
    const { job } = await ask("POST", "/api/tables", chosen);
    const made = await follow(job, turn, report);
    return ask("GET", `/api/tables/${made.table}`);
  });
  if (table) showTable({ ...table, chosen });
}

function showTable(table) {
  page.table = table;
  const [first] = table.sensitive;
  const ofCells = (number) => `${percent(number / table.cells)} of cells`;
  setFigures(at("table-figures"), [
    ["People", count(table.records), table.dropped ? `${count(table.dropped)} dropped: a value is missing` : ""],
    ["Cells", count(table.cells), "combinations of quasi-identifiers that occur"],
    ...table.sensitive.map(({ name, homogeneous }) => [`Cells with one value of ${name}`, count(homogeneous), ofCells(homogeneous)]),
    ["Cells with one person", count(first.unique), ofCells(first.unique)],
  ]);
  at("warnings").querySelector("ul").replaceChildren(...table.warnings.map((words) => make("li", {}, words)));
  at("warnings").hidden = table.warnings.length === 0;
  for (const id of ["table-area", "see"]) at(id).hidden = false;
  markSteps();
  setOptions(at("sensitive"), table.sensitive.map(({ name }) => [name, name]), first.name);
  at("sensitive-field").hidden = table.sensitive.length === 1;
  showCompareFields();
  announce(`The table is counted: ${count(table.records)} people in ${count(table.cells)} cells. Go on to step 2, See.`);
  loadPositions();
}
