// The page of sets: it asks the server, shows what comes back, and computes no risk itself. It starts here.
import { announce, at, later, setOptions, showError, showNote, write } from "./elements.js";
import { count, size } from "./numbers.js";
import { ask, previewOf, work } from "./server.js";
import { copyCode, drawGrowth, showAnswer, showCommands, showStale } from "./set_shown.js";
import { columnsOf, isStale, known, readAddress, saySet, takeSet, writeAddress } from "./set_state.js";
import { addLevels, addTable, dropSensitive, findFault, showCards, showDeltas, showLevels, watchCards } from "./set_tables.js";

const LARGEST_SET = 64_000;
const MISSING = { category: "are a value of their own", drop: "leave the record out", error: "refuse the file" };
const NOISE = [["independent", "anew for every count of every table"], ["shared", "once for several tables"], ["cell-key", "by cell keys"],
  ["margins", "as margins of one noisy table"], ["consistent", "and tables made consistent"]];
const OUTSIDE = [["error", "refuse the file"], ["drop", "leave the record out"]];
const GONE = 404;
const AGAIN = { file: (name) => ({ path: name }), example: () => ({ example: "adult" }) };

function showServer() {
  const { server } = known;
  const titled = (list) => server[list].map(({ name, title }) => [name, title]);
  setOptions(at("mechanism"), titled("mechanisms"), "geometric");
  setOptions(at("neighbours"), titled("neighbours"), "add-remove");
  setOptions(at("missing"), server.missing.map((rule) => [rule, MISSING[rule] ?? rule]), "category");
  setOptions(at("noise"), NOISE, "independent");
  setOptions(at("outside"), OUTSIDE, "error");
}

async function showFiles() {
  const answer = await work(at("folder-status"), null, () => ask("GET", "/api/files"));
  if (!answer) return;
  setOptions(at("folder-file"), answer.files.map(({ path, bytes }) => [path, `${path} (${size(bytes)})`]));
  at("folder-way").hidden = answer.files.length === 0;
}

function upload(file) {
  const limit = known.server?.upload_limit ?? Infinity;
  at("file").value = "";
  if (!file) return;
  const form = new FormData();
  form.append("file", file);
  if (file.size <= limit) loadSource(`Reading ${file.name}`, (turn, report) => ask("POST", "/api/uploads", form, turn, report));
  else showError(at("load-status"), new Error(`The file is ${size(file.size)} large; at most ${size(limit)} can be uploaded.`));
}

let lost = null; // what an address said of a file that the server no longer has

async function loadSource(words, begin) {
  const source = await work(at("load-status"), words, async (turn, report) => previewOf((await begin(turn, report)).source, turn, report));
  if (!source) return;
  showSource(source, lost);
  lost = null;
  writeAddress("pushState");
  at("source-title").focus();
}

// Shows the boxes for a source: what was chosen for it before, or none but the sensitive column that is suggested.
function showSource(source, chosen = null) {
  Object.assign(known, { source, answer: null, counted: null });
  const [counted] = source.suggested.counts;
  const usable = source.columns.filter(({ kind }) => kind !== "other");
  write("source-title", `${source.name}: ${count(source.rows)} rows, ${source.columns.length} columns`);
  write("set-source", source.name);
  setOptions(at("sensitive"), usable.map(({ name }) => [name, name]), source.suggested.sensitive[0] ?? usable.at(-1)?.name);
  setOptions(at("count"), [["", counted ? "please choose" : "one person"], ["people", counted ? "one person" : "one person, though rows look like counts"],
    ...usable.filter(({ kind }) => kind === "number").map(({ name }) => [`in ${name}`, `a cell, counted in ${name}`])], "");
  takeSet(chosen ?? { sensitive: at("sensitive").value, epsilon: 1, mechanism: "geometric" });
  for (const status of ["set-status", "count-status", "commands-status"]) at(status).replaceChildren();
  at("shown").hidden = true;
  at("tables").hidden = false;
  showCards();
  showLevels();
}

async function loadSetFile(file) {
  at("set-toml").value = "";
  if (!file) return;
  if (!known.source) return showError(at("load-status"), new Error("Load the records first: a set file describes tables of them."));
  if (file.size > 4 * LARGEST_SET) return showError(at("set-status"), new Error(`The set file is ${size(file.size)} large; at most ${size(LARGEST_SET)} are read.`));
  const read = await work(at("set-status"), `Reading ${file.name}`, async () => ask("POST", "/api/sets/read", { text: await file.text(), name: file.name }));
  if (!read) return;
  const unknown = columnsOf(read.chosen).filter((name) => !known.source.columns.some((column) => column.name === name));
  if (unknown.length) {
    return showError(at("set-status"), new Error(`${file.name} names columns that ${known.source.name} does not have: ${unknown.slice(0, 5).join(", ")}. Load the records that it is about first.`));
  }
  takeSet(read.chosen);
  showCards();
  showLevels();
  changed();
  const source = read.source === null ? "" : ` The source that it names, ${read.source}, is not opened: the records are those of ${known.source.name}.`;
  const aside = read.left_aside.length ? ` Left aside: ${read.left_aside.join(", ")}.` : "";
  showNote(at("set-status"), `${file.name} is read: ${count(known.tables.length)} ${known.tables.length === 1 ? "table" : "tables"}.${source}${aside}`);
  announce(`${file.name} is read.`);
}

// A box has changed: what is shown is said to be of before, and the address follows.
function changed() {
  showDeltas();
  if (known.answer) showStale(isStale());
  later("address", 200, noteBoxes);
}

// The way back leads to what was counted: what is changed after it has an entry of its own in the browser's history.
function noteBoxes() {
  const isNew = known.entry === "counted" && isStale();
  if (isNew) known.entry = "draft";
  writeAddress(isNew ? "pushState" : "replaceState");
}

async function countSet(isAsked = true) {
  const fault = findFault();
  if (fault) {
    showError(at("count-status"), new Error(fault[1]));
    return fault[0].focus();
  }
  noteBoxes();
  const asked = saySet();
  const path = `/api/sources/${known.source.source}/set`;
  const answer = await work(at("count-status"), "Counting the set", () => ask("POST", path, asked));
  if (!answer) return;
  Object.assign(known, { answer, counted: JSON.stringify(asked) });
  showAnswer(answer);
  showStale(isStale());
  writeAddress();
  known.entry = isStale() ? "draft" : "counted";
  if (isAsked) {
    at("shown-title").focus({ preventScroll: true });
    at("shown").scrollIntoView({ block: "start" });
  }
  const commands = await work(at("commands-status"), null, () => ask("POST", `${path}/commands`, asked));
  if (commands) showCommands(commands);
}

// Does what the address says: the file, the tables, and the counting. What the server no longer has is loaded again, or said.
async function restore() {
  const said = readAddress();
  if (!said.source) {
    if (known.source) location.reload();
    return;
  }
  const source = known.source?.source === said.source ? known.source
    : await work(at("load-status"), `Reading ${said.name}`, (turn, report) => previewOf(said.source, turn, report).catch(async (error) => {
      if (error.status !== GONE) throw error;
      if (!(said.kind in AGAIN)) {
        lost = said.chosen;
        throw new Error(`The server no longer has ${said.name}, which was uploaded. Choose the file again: the tables are kept.`);
      }
      return previewOf((await ask("POST", "/api/sources", AGAIN[said.kind](said.name))).source, turn, report);
    }));
  if (!source) return;
  showSource(source, said.chosen);
  known.entry = "draft";
  if (said.counted && known.tables.length) await countSet(false);
  else writeAddress();
}

function chooseTheme() {
  localStorage.setItem("cellrisk-theme", at("theme").value);
  document.documentElement.dataset.theme = at("theme").value;
}

function watchDrops() {
  const zone = at("drop");
  for (const name of ["dragenter", "dragover"]) zone.addEventListener(name, () => zone.classList.add("over"));
  for (const name of ["dragleave", "drop"]) zone.addEventListener(name, () => zone.classList.remove("over"));
  for (const name of ["dragover", "drop"]) window.addEventListener(name, (event) => event.preventDefault());
  window.addEventListener("drop", ({ dataTransfer: { files: [file] } }) => (file?.name.endsWith(".toml") ? loadSetFile(file) : upload(file)));
}

// On paper: the answer, and the set file that it is the answer to.
function preparePrint() {
  write("printed", `${known.source?.name ?? ""}, ${new Date().toLocaleString([], { dateStyle: "long", timeStyle: "short" })}`);
  drawGrowth();
}

function watchControls() {
  const actions = {
    change: { theme: chooseTheme, file: (event) => upload(event.target.files[0]), "set-toml": (event) => loadSetFile(event.target.files[0]),
      sensitive: () => { dropSensitive(); changed(); },
      ...Object.fromEntries(["mechanism", "missing", "count", "neighbours", "noise", "outside"].map((id) => [id, changed])) },
    input: Object.fromEntries(["epsilon", "delta", "threshold"].map((id) => [id, changed])),
    click: { "try-adult": () => loadSource("Reading the example", () => ask("POST", "/api/sources", { example: "adult" })),
      "open-file": () => loadSource("Reading the file", () => ask("POST", "/api/sources", { path: at("folder-file").value })),
      "add-table": () => addTable(), "add-levels": addLevels, "count-set": () => countSet(), print: () => window.print(),
      "copy-set-text": copyCode, "copy-shell": copyCode, "copy-python": copyCode },
  };
  for (const [name, byElement] of Object.entries(actions)) {
    for (const [id, action] of Object.entries(byElement)) at(id).addEventListener(name, action);
  }
  watchCards(changed);
  addEventListener("resize", () => later("resize", 60, drawGrowth));
  addEventListener("popstate", restore);
  addEventListener("beforeprint", preparePrint);
  addEventListener("afterprint", drawGrowth);
}

async function start() {
  at("theme").value = localStorage.getItem("cellrisk-theme") ?? "";
  watchControls();
  watchDrops();
  known.server = await work(at("load-status"), null, () => ask("GET", "/api/state"));
  if (!known.server) return;
  showServer();
  if (known.server.folder) showFiles();
  restore();
}

document.addEventListener("DOMContentLoaded", start);
