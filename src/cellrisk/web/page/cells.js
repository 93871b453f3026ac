// Cells of the table, shown one by one: a sample before and after a release, and the riskiest ones.
import { isWide } from "./charts.js";
import { at, make, makeTable, showNote, write } from "./elements.js";
import { claim, count, ofCells, percent } from "./numbers.js";
import { askTable, work } from "./server.js";
import { isPerturbed, page, presentPerturbation, presentSetting } from "./state.js";

const keyWords = (key) => Object.entries(key).map(([column, value]) => `${column} ${value}`).join(", ");
const badge = (scenario) => make("span", { class: `badge case-${scenario}` }, String(scenario));

// The keys of a very large table are read when somebody asks for them.
async function readCells(place) {
  const words = "Reading the cells";
  if (await work(place, words, () => askTable("cells", { sensitive: at("sensitive").value }))) {
    page.keyed = at("sensitive").value;
    if (!isPerturbed()) showGlimpse();
    showRiskiest();
  }
}

// The server holds the cells of one large table: those of this one are gone where another was read, on another page too.
const CELLS_GONE = 409;

async function askCells(place, what, asked) {
  const answer = await work(place, null, () => askTable(what, asked).catch((error) => {
    if (error.status === CELLS_GONE) page.keyed = null;
    throw error;
  }));
  if (!answer && page.table && !page.table.keyed && page.keyed === null) hasCells(place);
  return answer;
}

function hasCells(place) {
  const ready = page.table.keyed || page.keyed === at("sensitive").value;
  if (!ready) showNote(place, `The table has ${ofCells(page.table.cells)}; to show some, all have to be read. `,
    make("button", { type: "button", class: "small", click: () => readCells(place) }, "Read the cells"));
  return ready;
}

export async function showGlimpse() {
  if (!hasCells(at("glimpse-status"))) return;
  const asked = { ...presentSetting(), seed: page.seed, cells: isWide("main") ? 12 : 6 };
  const answer = await askCells(at("glimpse-status"), "glimpse", asked);
  if (!answer) return;
  at("glimpse-epsilon").textContent = claim(page.epsilon);
  at("legend").replaceChildren(...answer.legend.map(({ scenario, text, exposes }) =>
    make("li", {}, badge(scenario), make("span", {}, text, exposes ? make("strong", {}, ": people are exposed") : null))));
  at("glimpse").tBodies[0].replaceChildren(...answer.cells.map((cell) => make("tr", {},
    make("th", { scope: "row" }, keyWords(cell.key)),
    make("td", { "data-label": "Raw counts" }, countsOf(answer.levels, cell.before)),
    make("td", { "data-label": "Released counts" }, countsOf(answer.levels, cell.after)),
    make("td", { "data-label": "What happened" }, make("span", { class: "scenario" }, badge(cell.scenario), make("span", {}, cell.scenario_text))))));
}

const MOST_LEVELS = 5;

function countsOf(levels, counts) {
  const present = levels.map((level, place) => [level, counts[place]]).filter(([, number]) => number > 0);
  if (!present.length) return make("span", { class: "quiet" }, "nothing");
  const chip = ([level, number]) => make("span", { class: "chip" }, `${level} `, make("strong", {}, count(number)));
  const more = present.length - MOST_LEVELS;
  return make("span", { class: "chips" }, ...present.slice(0, MOST_LEVELS).map(chip), more > 0 ? make("span", { class: "quiet" }, `and ${count(more)} more`) : null);
}

export async function showRiskiest() {
  if (!hasCells(at("riskiest-status"))) return;
  const [what, asked] = isPerturbed() ? ["perturbed/riskiest", presentPerturbation()] : ["riskiest", presentSetting()];
  const answer = await askCells(at("riskiest-status"), what, { ...asked, top: Number(at("top").value) });
  if (!answer || (isPerturbed() && !page.perturbed)) return;
  page.riskiest = answer;
  if (isPerturbed()) write("riskiest-perturbed", `With ${page.perturbed.name}.`);
  else at("riskiest-epsilon").textContent = claim(page.epsilon);
  showSorted();
}

const RISKIEST = [["people", "records", count], ["values", "levels", count], ["risk", "risk", percent],
  ["expected exposed", "people", (people) => people.toFixed(1)]];

function showSorted() {
  const { columns, rows } = page.riskiest;
  const { column, descending } = page.order;
  const valueOf = (row) => (columns.includes(column) ? row.key[column] : row[column]);
  const compare = (one, other) => (typeof one === "number" ? one - other : one.localeCompare(other, "en", { numeric: true }));
  const sorted = [...rows].sort((one, other) => (descending ? -1 : 1) * compare(valueOf(one), valueOf(other)));
  const table = makeTable("The riskiest cells", columns, RISKIEST.map(([title]) => title),
    sorted.map((row) => [...columns.map((name) => row.key[name]), ...RISKIEST.map(([, name, words]) => words(row[name]))]));
  const names = [...columns, ...RISKIEST.map(([, name]) => name)];
  names.forEach((name, place) => makeSortable(table.tHead.rows[0].cells[place], name, place >= columns.length));
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
