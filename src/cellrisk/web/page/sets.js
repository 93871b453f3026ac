// The page of sets: it loads records and a set file, asks the server, and shows what comes back. It starts here.
import { copyCode, fetchFile, openers, readAgain, readSource, showFiles, upload, watchDrops, watchElements, watchTheme } from "./both.js";
import { announce, at, later, make, setItems, setVerdict, showError, write } from "./elements.js";
import { ask, work } from "./server.js";

const known = { server: null, source: null, name: "set.toml", counted: null, entry: "draft" };
const asked = () => ({ text: at("set-text").value, name: known.name });
const path = () => `/api/sources/${known.source.source}/set`;

// The file, the set file and whether it was counted are in the address, after the #, which browsers send to nobody.
function writeAddress(how = "replaceState") {
  const said = new URLSearchParams({ source: `${known.source.kind}:${known.source.name}`, id: known.source.source });
  at("to-one").href = `/#step=load&${said}`;
  said.set("set", at("set-text").value);
  if (known.counted === at("set-text").value) said.set("counted", "yes");
  if (`#${said}` !== location.hash) history[how](null, "", `#${said}`);
}

// The way back leads to what was counted: what is changed after it has an entry of its own in the browser's history.
function noteText() {
  writeAddress(known.entry === "counted" && at("set-text").value !== known.counted ? "pushState" : "replaceState");
  if (at("set-text").value !== known.counted) known.entry = "draft";
}

// Does what the address says. What the server no longer has is loaded again, or said.
async function restore() {
  const said = new URLSearchParams(location.hash.slice(1));
  const [kind, ...name] = (said.get("source") ?? "").split(":");
  if (!kind) {
    if (known.source) location.reload();
    return;
  }
  at("set-text").value = said.get("set") ?? "";
  const source = await readAgain({ source: said.get("id"), name: name.join(":"), kind }, () => {}, "the set file is kept");
  if (!source) return;
  showSource(source);
  if (said.get("counted") === "yes") await countSet(false);
}

async function loadSource(words, begin) {
  const source = await readSource(words, begin);
  if (!source) return;
  showSource(source);
  writeAddress("pushState");
  at("source-title").focus();
}

// A set file to begin with: one table of the columns that are suggested.
function suggest({ suggested: { quasi_identifiers: keys, sensitive, bins } }) {
  const list = (texts) => `[${texts.map((text) => JSON.stringify(text)).join(", ")}]`;
  const edges = Object.entries(bins).map(([name, width]) => `${name}=${width}`);
  return `sensitive = ${JSON.stringify(sensitive[0] ?? "")}\nepsilon = 1\n${edges.length ? `bin = ${list(edges)}\n` : ""}\n[[table]]\nqid = ${list(keys)}\n`;
}

function showSource(source) {
  Object.assign(known, { source, counted: null, entry: "draft" });
  write("source-title", source.title);
  write("set-source", source.name);
  if (!at("set-text").value) at("set-text").value = suggest(source);
  at("shown").hidden = true;
  at("tables").hidden = false;
}

async function loadSetFile(file) {
  at("set-toml").value = "";
  if (!file) return;
  if (!known.source) return showError(at("load-status"), new Error("Load the records first: a set file describes tables of them."));
  known.name = file.name;
  at("set-text").value = await file.text();
  announce(`${file.name} is read.`);
  countSet();
}

async function countSet(isAsked = true) {
  const set = asked();
  noteText();
  const answer = await work(at("count-status"), "Counting the set", () => ask("POST", path(), set));
  at("shown").hidden = !answer;
  if (!answer) return;
  known.counted = set.text;
  known.entry = "counted";
  showAnswer(answer);
  writeAddress();
  if (isAsked) at("shown-title").focus();
}

function showAnswer(answer) {
  const { head, rows, all, growth, warnings, policy, kind, verdict, broken } = answer;
  write("sentence", answer.sentence);
  at("mind").hidden = !warnings.length;
  setItems(at("mind").querySelector("ul"), warnings);
  at("judged").hidden = !policy;
  setVerdict(at("judged"), kind, verdict, broken, policy ?? "");
  const cell = (text, place) => make("td", { class: head[place] === "own record" ? "right caused" : "right", "data-label": head[place] }, text);
  const row = ({ title, more, numbers }, name = null) => make("tr", { class: name },
    make("th", { scope: "row" }, title, more ? make("span", { class: "more" }, more) : null), ...numbers.map(cell));
  at("matrix").replaceChildren(make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Table"), ...head.map((title) => make("th", { scope: "col", class: "right" }, title)))),
    make("tbody", {}, ...rows.map((table) => row(table)), row(all, "all")));
  for (const name of ["caused", "right"]) at(`growth-${name}`).replaceChildren(...growth[name].flatMap(({ title, bars }) => [make("dt", {}, title), ...bars.map(makeBar)]));
  write("cost", answer.cost);
  setItems(at("statements"), answer.statements);
  write("shell", `cellrisk together ${known.name}\ncellrisk together report ${known.name} --output report.html\n`);
  announce(answer.sentence);
}

function makeBar([share, text]) {
  const bar = make("span", { class: "growth-bar" });
  bar.style.width = `${Math.max(0.5, 60 * share)}%`;
  return make("dd", {}, bar, text);
}

async function start() {
  watchTheme();
  const takeRecords = (file) => upload(file, known.server, loadSource);
  watchElements({
    change: { file: (event) => takeRecords(event.target.files[0]), "set-toml": (event) => loadSetFile(event.target.files[0]) },
    input: { "set-text": () => later("address", 200, noteText) },
    click: { ...openers(loadSource), "count-set": () => countSet(), "copy-shell": copyCode,
      report: () => fetchFile(at("download-status"), "Writing the report", () => ask("POST", `${path()}/report`, asked())) },
  });
  watchDrops((file) => (file?.name.endsWith(".toml") ? loadSetFile(file) : takeRecords(file)));
  addEventListener("popstate", restore);
  known.server = await work(at("load-status"), null, () => ask("GET", "/api/state"));
  if (!known.server) return;
  if (known.server.folder) showFiles();
  restore();
}

document.addEventListener("DOMContentLoaded", start);
