// What a set gives away: the sentence, the matrix of tables by figures, the pictures, and the same elsewhere.
import { announce, at, make, makeTable, setVerdict, showNote, write } from "./elements.js";
import { claim, mostPercent, ofCells, ofPeople, short, writePeople } from "./numbers.js";
import { shape } from "./picture.js";
import { known } from "./set_state.js";

const signed = (number) => (number < 0 ? `−${writePeople(-number)}` : `+${writePeople(number)}`);
const bound = (share) => (share === null ? "–" : mostPercent(share));
const FIGURES = ["right", "named", "caused", "chance", "raw"];
const HEAD = ["epsilon", ...FIGURES, "worst case", "right without it", "caused without it", "adds to caused"];

function makeRow(title, more, numbers, kind = null) {
  const cells = HEAD.map((label, place) => make("td", { class: label === "caused" ? "right caused" : "right", "data-label": label }, numbers[place]));
  return make("tr", { class: kind }, make("th", { scope: "row" }, title, more ? make("span", { class: "more" }, more) : null), ...cells);
}

function showMatrix({ tables, rules, ceiling, epsilon, delta }) {
  const rows = tables.map((table) => makeRow(`${table.number}: ${table.title}`,
    [table.title === table.described ? "" : table.described, `${ofPeople(table.records)} in ${ofCells(table.cells)}`].filter(Boolean).join("; "),
    [claim(table.epsilon), ...FIGURES.map((name) => writePeople(table.alone[name])), bound(table.ceiling),
      ...(table.without ? [writePeople(table.without.right), writePeople(table.without.caused), signed(table.without.adds_caused)] : ["–", "–", "–"])]));
  const [lead] = rules;
  const all = makeRow(tables.length === 1 ? "The set" : `All ${tables.length} together`, delta ? `at delta ${claim(delta)}` : "",
    [claim(epsilon), ...FIGURES.map((name) => writePeople(lead[name])), bound(ceiling), "", "", ""], "all");
  at("matrix").replaceChildren(make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Table"), ...HEAD.map((label) => make("th", { scope: "col", class: "right" }, label)))),
    make("tbody", {}, ...rows, all));
}

function showRules({ rules }) {
  const rows = rules.map((rule) => [rule.rule, ...[rule.right, rule.named].map(writePeople), rule.precision === null ? "–" : `${(100 * rule.precision).toFixed(1)}%`,
    rule.sd.toLocaleString("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 }) + (rule.sd_error === null ? "" : ` (± ${short(rule.sd_error)})`),
    ...[rule.caused, rule.chance, rule.raw].map(writePeople)]);
  at("rules-table").replaceChildren(makeTable("Three rules", ["all tables together"], ["right", "named", "precision", "sd", "caused", "chance", "raw"], rows));
  at("rules-say").replaceChildren(...rules.map(({ rule, says }) => make("li", {}, `${rule}: ${says}.`)));
}

const listItems = (place, lines) => place.replaceChildren(...lines.map((line) => make("li", {}, line)));

export function showAnswer(answer) {
  write("sentence", answer.sentence);
  const mind = [...answer.differences, ...(answer.least_squares ? [answer.least_squares] : [])];
  at("mind").hidden = !mind.length;
  listItems(at("mind").querySelector("ul"), mind);
  at("judged").hidden = !answer.policy;
  const [kind, verdict] = answer.above.length ? ["bad", "The set is above a limit."] : ["good", "The set keeps every limit that is in force."];
  setVerdict(at("judged"), kind, verdict, answer.above, answer.policy ?? "");
  showMatrix(answer);
  write("parts", answer.parts);
  write("interval", answer.interval);
  showRules(answer);
  write("cost", `${answer.cost} ${answer.nobody}`);
  listItems(at("statements"), answer.statements);
  const known = new Map(answer.growth.map((each) => [each.tables, each]));
  const cell = (each, name) => (each ? writePeople(each[name]) : "–");
  at("growth-numbers").replaceChildren(makeTable("How it grows", ["table"], ["caused, with all above it", "caused, by itself", "right, with all above it", "right, by itself"],
    answer.tables.map(({ number, title, alone }) => [`${number}: ${title}`, cell(known.get(number), "caused"), writePeople(alone.caused), cell(known.get(number), "right"), writePeople(alone.right)])));
  write("growth-help", answer.growth.length === answer.tables.length ? "Each table with all above it, and by itself." : "Each table by itself, and with all above it where that was counted: of more than six tables, the first ones are not.");
  at("shown").hidden = false;
  drawGrowth();
  announce(answer.sentence);
}

const [NAME, THICK, THIN, GAP, LETTER] = [18, 18, 16, 14, 7.6];
const shorten = (words, width) => (words.length * LETTER <= width ? words : `${words.slice(0, Math.max(1, Math.floor(width / LETTER) - 1))}…`);

// A row for each table: its name, a bar of it with all above it, a bar of it by itself. Each bar has its words beside it, for
// which there is always room.
function drawRows(id, name) {
  const { tables, growth } = known.answer;
  const place = at(id);
  const width = place.clientWidth;
  place.querySelector("svg")?.remove();
  if (!width) return;
  const together = new Map(growth.map((each) => [each.tables, each[name]]));
  const rows = tables.map(({ number, title, alone }) => ({ title: `${number}: ${title}`, bars: [
    ...(number > 1 && together.has(number) ? [{ kind: name, value: together.get(number), words: width > 420 ? "with all above" : "with above", height: THICK }] : []),
    { kind: number > 1 ? "alone" : name, value: alone[name], words: "by itself", height: number > 1 ? THIN : THICK }] }));
  const bars = rows.flatMap((row) => row.bars);
  const words = ({ value, words: said }) => `${writePeople(value)} ${said}`;
  const room = 10 + LETTER * Math.max(...bars.map((bar) => words(bar).length));
  const largest = Math.max(...bars.map(({ value }) => value)) || 1;
  const drawn = [];
  let y = 0;
  for (const { title, bars: own } of rows) {
    drawn.push(shape("text", { class: "row-title", x: 0, y: y + 12 }, shorten(title, width)));
    y += NAME;
    for (const bar of own) {
      const long = Math.max(1.5, ((width - room) * bar.value) / largest);
      drawn.push(shape("rect", { class: `bar ${bar.kind}`, x: 0, y: y + 2, width: long, height: bar.height - 4, rx: 1.5 }),
        shape("text", { class: `label ${bar.kind}`, x: long + 6, y: y + bar.height / 2 + 4 }, words(bar)));
      y += bar.height;
    }
    y += GAP;
  }
  place.style.height = `${y}px`;
  place.prepend(shape("svg", { viewBox: `0 0 ${width} ${y}`, width: "100%", height: y, "aria-hidden": "true" }, ...drawn));
}

export function drawGrowth() {
  if (!known.answer) return;
  drawRows("growth-caused", "caused");
  drawRows("growth-right", "right");
}

let made = null; // the address of the file to be downloaded

export function showCommands({ set_file: text, shell, python }) {
  [at("set-text").textContent, at("shell").textContent, at("python").textContent] = [text, shell, python];
  if (made) URL.revokeObjectURL(made);
  made = URL.createObjectURL(new Blob([text], { type: "application/toml" }));
  at("download").href = made;
}

// Whether what is shown is what the boxes say.
export function showStale(isStale) {
  at("shown").classList.toggle("old", isStale);
  if (isStale) showNote(at("stale"), "The boxes have changed since this was counted. Count the set again.");
  else at("stale").replaceChildren();
}
