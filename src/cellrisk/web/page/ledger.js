// Step 5: what was released before.
import { at, make, makeTable, showNote } from "./elements.js";
import { short } from "./numbers.js";
import { ask, work } from "./server.js";
import { page } from "./state.js";

export async function showLedger() {
  if (!page.server.ledger) return showNote(at("ledger-status"), "No ledger was named at the start. To keep one: cellrisk serve --ledger FILE");
  const answer = await work(at("ledger-status"), null, () => ask("GET", "/api/ledger"));
  if (!answer) return;
  const verified = answer.verified ? "The chain of entries is unbroken." : "The chain of entries is broken: the ledger was changed by hand.";
  const rows = answer.entries.map((entry) => [entry.when, entry.cohort, entry.purpose, entry.mechanism ?? "–",
    lossOf(entry), entry.delta ? short(entry.delta) : "–"]);
  const table = makeTable("Entries of the ledger", ["when", "cohort", "purpose", "mechanism"], ["epsilon", "delta"], rows);
  const scroll = make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Entries of the ledger" }, table);
  at("ledger-area").replaceChildren(make("p", { class: "sentence" }, answer.sentence),
    make("p", { class: answer.verified ? "note" : "error" }, verified), ...answer.cohorts.map(makeCohort), rows.length ? scroll : "");
}

// A concentrated loss is a rho alone, and has no epsilon of its own.
const lossOf = ({ epsilon, rho }) => (epsilon !== null ? short(epsilon) : rho !== null ? `rho ${short(rho)}` : "–");

function makeCohort({ name, epsilon, delta, limit }) {
  const of = limit === null ? "" : ` of ${short(limit)}`;
  const spent = epsilon === null ? `${name}: losses that do not add up to one epsilon${of ? `; the limit is ${short(limit)}` : ""}`
    : `${name}: epsilon ${short(epsilon)}${delta ? ` at delta ${short(delta)}` : ""} spent${of}`;
  const meter = limit === null || epsilon === null ? null : make("meter", { min: 0, max: limit, high: 0.8 * limit, value: epsilon, "aria-label": spent });
  return make("div", { class: "cohort" }, make("p", {}, spent), meter);
}
