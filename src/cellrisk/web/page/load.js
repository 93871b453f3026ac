// Step 1: a file is loaded, its columns get a meaning, and the table is counted.
import { GONE, readAgain, readSource, upload } from "./both.js";
import { forgetCharts } from "./charts.js";
import { announce, at, make, setFigures, setItems, setOptions, showError, showNote, stopWaiting, write } from "./elements.js";
import { loadPositions } from "./see.js";
import { ask, endTurns, work } from "./server.js";
import { chosenColumns, forgetWishes, fulfil, page, readAddress, wishedEpsilon, writeAddress } from "./state.js";
import { openStep, tell } from "./steps.js";

export const takeFile = (file) => upload(file, page.server, (words, begin) => loadSource(words, begin, page.lost));

// Reads a source and shows its columns. What an address said of a file that the server had lost is used again.
export async function loadSource(words, begin, lost = null) {
  forgetTable();
  if (!lost) forgetWishes();
  page.source = null;
  at("columns-area").hidden = true;
  openStep("load", { how: null, focus: false });
  const source = await readSource(words, begin);
  if (!source) return;
  page.lost = null;
  showColumns(source, lost?.chosen);
  writeAddress("pushState");
  at("source-title").focus();
}

// Does what the address says: the file, the table and every choice. What the server no longer has is made again, or said.
export async function restore() {
  const said = readAddress();
  if (!said.source) {
    if (page.source) location.reload();
    return openStep("load", { how: null, focus: false });
  }
  if (page.table?.table === said.table && page.source?.source === said.source) {
    fulfil();
    page.epsilon = wishedEpsilon();
    openStep(said.step, { how: null, focus: false });
    if (page.table) loadPositions();
    return;
  }
  forgetTable();
  const source = await readAgain(said, () => { page.lost = said; }, "what was chosen for it is kept");
  if (!source) return openStep("load", { how: null, focus: false });
  showColumns(source, said.chosen);
  openStep("load", { how: null, focus: false });
  if (said.counting) return countTable("see", "replaceState");
  if (!said.chosen || !said.table) return;
  const table = await ask("GET", `/api/tables/${said.table}`).catch((error) => (error.status === GONE ? null : Promise.reject(error)));
  if (table) return showTable({ ...table, chosen: chosenColumns() }, said.step, "replaceState");
  await countTable(said.step, "replaceState");
  if (page.table) showNote(at("restored"), "The server no longer had this table, and has counted it again. Every choice is as it was.");
}

// Whether a person can have several rows, which column then names the person, and how many of the rows count at most.
function offerPeople({ columns }, chosen) {
  setOptions(at("several"), [["", "No: each row is another person"], ["yes", "Yes"]], chosen?.contributions ? "yes" : "");
  setOptions(at("person"), [["", "none: the number is taken on trust"], ...columns.map(({ name }) => [name, name])], chosen?.person ?? "");
  for (const id of ["contributions", "per-group"]) at(id).value = chosen?.[id.replace("-", "_")] ?? "";
  showPeople();
}

export const showPeople = () => { at("people-fields").hidden = at("several").value === ""; };

// What each row is: nothing said, a record whatever it looks like, or a group with its count in a column.
function offerCounts({ columns, suggested: { counts: [counted] } }, chosen) {
  const numbers = columns.filter(({ kind }) => kind === "number");
  setOptions(at("count"), [["", counted ? "please choose" : "one record"], ["people", counted ? "one record" : "one record, though rows look like counts"],
    ...numbers.map(({ name }) => [`in ${name}`, `a group, counted in ${name}`])], chosen);
}

const readCount = (rows) => (rows === "" ? null : rows === "people" ? false : rows.slice("in ".length));

function showColumns(source, chosen = null) {
  page.source = source;
  const { quasi_identifiers: keys, sensitive, bins } = chosen ?? source.suggested;
  const roleOf = (name) => (keys.includes(name) ? "qid" : sensitive.includes(name) ? "sensitive" : "unused");
  const [counted] = source.suggested.counts;
  write("source-title", source.title);
  const rows = source.columns.map((column, place) => makeColumnRow(column, place, roleOf(column.name), bins[column.name]));
  at("columns").tBodies[0].replaceChildren(...rows);
  offerPeople(source, chosen);
  offerCounts(source, chosen?.rows ?? "");
  at("missing").value = chosen?.missing ?? "category";
  at("count-hint").hidden = !counted;
  write("count-hint", `Column ${counted} looks like counts of people. Say under “Each row is” whether a row is one record, or a group that ${counted} counts.`);
  tell("load", source.title);
  at("columns-area").hidden = false;
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
    make("td", { class: "right", "data-label": "Values" }, column.levels),
    make("td", { class: "right", "data-label": "Missing" }, column.missing),
    ...ROLES.map(radio), make("td", { "data-label": "Bins" }, field));
  return row;
}

function forgetTable() {
  endTurns();
  stopWaiting();
  Object.assign(page, { table: null, positions: null, shown: null, traced: null, figures: null, admissible: null, map: null });
  forgetCharts();
  for (const id of ["table-area", "see-area", "map-area"]) at(id).hidden = true;
  for (const status of document.querySelectorAll("main .status:not(#ledger-status)")) status.replaceChildren();
}

// What has to be said in a box before the table can be counted: the box and the words, or null.
function findUnsaid({ quasi_identifiers: keys, sensitive, rows, person }) {
  if (!keys.length || !sensitive.length) return [null, "Choose at least one quasi-identifier and one sensitive column."];
  const [counted] = page.source.suggested.counts;
  const used = (name) => [...keys, ...sensitive].includes(name);
  if (at("several").value && !(at("contributions").value && at("contributions").validity.valid && at("per-group").validity.valid)) {
    return ["contributions", "Say how many records of one person count at most: a whole number from 1 on."];
  }
  if (person && used(person)) return ["person", `${person} names people: choose “Not used” for it, or another column under “Column of people”.`];
  if (counted && !used(counted) && rows === "") return ["count", `Say under “Each row is” whether a row is one record, or a group that ${counted} counts.`];
  if (rows.startsWith("in ") && used(readCount(rows))) return ["count", `${readCount(rows)} is both a role and the counts: choose “Not used” for it, or another under “Each row is”.`];
  return null;
}

export async function countTable(step = "see", how = "pushState") {
  const chosen = chosenColumns();
  forgetTable();
  openStep("load", { how: null, focus: false });
  const unsaid = findUnsaid(chosen);
  if (unsaid) {
    showError(at("count-status"), new Error(unsaid[1]));
    if (unsaid[0]) at(unsaid[0]).focus();
    return;
  }
  const { rows, ...asked } = chosen;
  page.counting = true;
  writeAddress(); // a reload goes on counting
  const table = await work(at("count-status"), "Counting the table", () => ask("POST", "/api/tables", { ...asked, count: readCount(rows) }));
  page.counting = false;
  if (table) await showTable({ ...table, chosen }, step, how);
  else writeAddress();
}

function showTable(table, step, how) {
  page.table = table;
  setFigures(at("table-figures"), table.figures);
  setItems(at("warnings").querySelector("ul"), table.warnings);
  at("warnings").hidden = table.warnings.length === 0;
  at("table-area").hidden = false;
  setOptions(at("sensitive"), table.sensitive.map((name) => [name, name]), table.sensitive[0]);
  at("sensitive-field").hidden = table.sensitive.length === 1;
  fulfil();
  page.epsilon = wishedEpsilon();
  tell("load", table.sentence);
  announce(`The table is counted: ${table.sentence}. Step 2, See, is open.`);
  openStep(step, { how });
  return loadPositions();
}
