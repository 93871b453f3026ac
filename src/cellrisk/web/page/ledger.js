// Step 5: what was released before.
import { at, copy, make, makeTable, showNote } from "./elements.js";
import { ask, work } from "./server.js";
import { page } from "./state.js";
import { tell } from "./steps.js";

export async function showLedger() {
  if (!page.server.ledger) {
    tell("ledger", "none was named at the start");
    return showNote(at("ledger-status"), "No ledger was named at the start. To keep one: cellrisk serve --ledger FILE");
  }
  const answer = await work(at("ledger-status"), null, () => ask("GET", "/api/ledger"));
  if (!answer) return;
  const rows = answer.entries.map(({ when, digest, cells, numbers }) => [makeTime(when), ...cells, makeDigest(digest), ...numbers]);
  const table = makeTable("Entries of the ledger", ["when", "cohort", "purpose", "mechanism", "digest"], ["epsilon", "delta"], rows);
  const scroll = make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Entries of the ledger" }, table);
  at("ledger-area").replaceChildren(make("p", { class: "sentence" }, answer.sentence),
    make("p", { class: answer.verified ? "note" : "error" }, answer.chain), ...answer.cohorts.map(makeCohort), rows.length ? scroll : "");
  tell("ledger", answer.sentence);
}

// A moment in the reader's own time and way, to the minute.
function makeTime(when) {
  const moment = new Date(when);
  const words = Number.isNaN(moment.valueOf()) ? when : moment.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  return make("time", { datetime: when, title: `${when} UTC` }, words);
}

// The first eight characters, and a button that copies them all.
const makeDigest = (digest) => make("span", { class: "digest" }, make("code", { title: digest }, digest.slice(0, 8)), " ",
  make("button", { type: "button", class: "small", "aria-label": `Copy the digest that begins with ${digest.slice(0, 8)}`, click: (event) => copy(event.currentTarget, digest) }, "Copy"));

const makeCohort = ({ sentence, spent, limit }) => make("div", { class: "cohort" }, make("p", {}, sentence),
  limit === null ? null : make("meter", { min: 0, max: limit, high: 0.8 * limit, value: spent, "aria-label": sentence }));
