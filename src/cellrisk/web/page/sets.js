// The page of sets: it asks the server, shows what comes back, and computes no risk itself. It starts here.
import { copyCode, offerCounts, openers, printedLine, readAgain, readSource, showFiles, upload, watchDrops, watchElements, watchTheme } from "./both.js";
import { announce, at, later, setOptions, showError, showNote, write } from "./elements.js";
import { count, size } from "./numbers.js";
import { ask, work } from "./server.js";
import { drawGrowth, showAnswer, showCommands, showStale } from "./set_shown.js";
import { columnsOf, isStale, known, readAddress, saySet, takeSet, writeAddress } from "./set_state.js";
import { addLevels, addTable, dropSensitive, findFault, showCards, showDeltas, showLevels, watchCards } from "./set_tables.js";

const LARGEST_SET = 64_000;
const MISSING = { category: "are a value of their own", drop: "leave the record out", error: "refuse the file" };
const NOISE = [["independent", "anew for every count of every table"], ["shared", "once for several tables"], ["cell-key", "by cell keys"],
  ["margins", "as margins of one noisy table"], ["consistent", "and tables made consistent"]];
const OUTSIDE = [["error", "refuse the file"], ["drop", "leave the record out"]];

function showServer() {
  const { server } = known;
  const titled = (list) => server[list].map(({ name, title }) => [name, title]);
  setOptions(at("mechanism"), titled("mechanisms"), "geometric");
  setOptions(at("neighbours"), titled("neighbours"), "add-remove");
  setOptions(at("missing"), server.missing.map((rule) => [rule, MISSING[rule] ?? rule]), "category");
  setOptions(at("noise"), NOISE, "independent");
  setOptions(at("outside"), OUTSIDE, "error");
}

const takeRecords = (file) => upload(file, known.server, loadSource);

let lost = null; // what an address said of a file that the server no longer has

async function loadSource(words, begin) {
  const source = await readSource(words, begin);
  if (!source) return;
  showSource(source, lost);
  lost = null;
  writeAddress("pushState");
  at("source-title").focus();
}

// Shows the boxes for a source: what was chosen for it before, or none but the sensitive column that is suggested.
function showSource(source, chosen = null) {
  Object.assign(known, { source, answer: null, counted: null });
  const usable = source.columns.filter(({ kind }) => kind !== "other");
  write("source-title", `${source.name}: ${count(source.rows)} rows, ${source.columns.length} columns`);
  write("set-source", source.name);
  setOptions(at("sensitive"), usable.map(({ name }) => [name, name]), source.suggested.sensitive[0] ?? usable.at(-1)?.name);
  offerCounts(source, "");
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
    : await readAgain(said, () => { lost = said.chosen; }, "the tables are kept");
  if (!source) return;
  showSource(source, said.chosen);
  known.entry = "draft";
  if (said.counted && known.tables.length) await countSet(false);
  else writeAddress();
}

// What is dropped: a set file by its name, or else records.
const takeFile = (file) => (file?.name.endsWith(".toml") ? loadSetFile(file) : takeRecords(file));

// On paper: the answer, and the set file that it is the answer to.
function preparePrint() {
  write("printed", printedLine(known.source));
  drawGrowth();
}

function watchControls() {
  watchElements({
    change: { file: (event) => takeRecords(event.target.files[0]), "set-toml": (event) => loadSetFile(event.target.files[0]),
      sensitive: () => { dropSensitive(); changed(); },
      ...Object.fromEntries(["mechanism", "missing", "count", "neighbours", "noise", "outside"].map((id) => [id, changed])) },
    input: Object.fromEntries(["epsilon", "delta", "threshold"].map((id) => [id, changed])),
    click: { ...openers(loadSource), "add-table": () => addTable(), "add-levels": addLevels, "count-set": () => countSet(), print: () => window.print(),
      "copy-set-text": copyCode, "copy-shell": copyCode, "copy-python": copyCode },
  });
  watchCards(changed);
  addEventListener("resize", () => later("resize", 60, drawGrowth));
  addEventListener("popstate", restore);
  addEventListener("beforeprint", preparePrint);
  addEventListener("afterprint", drawGrowth);
}

async function start() {
  watchTheme();
  watchControls();
  watchDrops(takeFile);
  known.server = await work(at("load-status"), null, () => ask("GET", "/api/state"));
  if (!known.server) return;
  showServer();
  if (known.server.folder) showFiles();
  restore();
}

document.addEventListener("DOMContentLoaded", start);
