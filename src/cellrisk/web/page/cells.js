// Cells of the table, shown one by one: a sample before and after a release, and the riskiest ones.
import { isWide } from "./charts.js";
import { at, make, makeTable, showNote, write } from "./elements.js";
import { askTable, work } from "./server.js";
import { isPerturbed, page, presentSetting } from "./state.js";

// The cells of a very large table are read when the user asks for them.
function askCells(place, what, more) {
  const words = page.table.few ? null : "Reading the cells";
  if (page.table.few || page.hasCells) return work(place, words, () => askTable(what, { ...presentSetting(), ...more }));
  const read = () => { page.hasCells = true; if (!isPerturbed()) showGlimpse(); showRiskiest(); };
  showNote(place, `The table has ${page.table.cells}; to show some, all have to be read. `,
    make("button", { type: "button", class: "small", click: read }, "Read the cells"));
  return null;
}

const badge = (scenario) => make("span", { class: `badge case-${scenario}` }, String(scenario));
const chips = (counts) => (counts.length ? make("span", { class: "chips" }, ...counts.map((words) => make("span", { class: "chip" }, words)))
  : make("span", { class: "quiet" }, "nothing"));

export async function showGlimpse() {
  const answer = await askCells(at("glimpse-status"), "glimpse", { seed: page.seed, cells: isWide("main") ? 12 : 6 });
  if (!answer) return;
  write("glimpse-epsilon", answer.epsilon);
  at("legend").replaceChildren(...answer.scenarios.map(({ text, exposes }, place) =>
    make("li", {}, badge(place + 1), make("span", {}, text, exposes ? make("strong", {}, ": people are exposed") : null))));
  at("glimpse").tBodies[0].replaceChildren(...answer.cells.map(({ key, before, after, scenario }) => make("tr", {},
    make("th", { scope: "row" }, key), make("td", { "data-label": "Raw counts" }, chips(before)), make("td", { "data-label": "Released counts" }, chips(after)),
    make("td", { "data-label": "What happened" }, make("span", { class: "scenario" }, badge(scenario), make("span", {}, answer.scenarios[scenario - 1].text))))));
}

export async function showRiskiest() {
  const answer = await askCells(at("riskiest-status"), "riskiest", { top: Number(at("top").value) });
  if (!answer) return;
  page.riskiest = answer;
  write("riskiest-about", answer.about);
  showSorted();
}

function showSorted() {
  const { words, numbers, rows } = page.riskiest;
  const { column, descending } = page.order;
  const names = [...words, ...numbers];
  const valueOf = (row) => row[Math.max(names.indexOf(column), 0)][0];
  const compare = (one, other) => (typeof one === "number" ? one - other : one.localeCompare(other, "en", { numeric: true }));
  const sorted = [...rows].sort((one, other) => (descending ? -1 : 1) * compare(valueOf(one), valueOf(other)));
  const table = makeTable("The riskiest cells", words, numbers, sorted.map((row) => row.map(([, text]) => text)));
  names.forEach((name, place) => makeSortable(table.tHead.rows[0].cells[place], name, place >= words.length));
  at("riskiest").replaceChildren(table);
}

function makeSortable(head, name, isNumber) {
  const { column, descending } = page.order;
  const sort = () => {
    page.order = { column: name, descending: name === column ? !descending : isNumber };
    showSorted();
    [...at("riskiest").querySelectorAll(".sort")].find((button) => button.dataset.column === name).focus();
  };
  head.setAttribute("aria-sort", name !== column ? "none" : descending ? "descending" : "ascending");
  head.replaceChildren(make("button", { type: "button", class: "sort", "data-column": name, click: sort }, head.textContent));
}
