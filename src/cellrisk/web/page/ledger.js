// Step 5: what was released before.
import { announce, at, make, makeTable, showNote } from "./elements.js";
import { claim, localTime, short } from "./numbers.js";
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
  const verified = answer.verified ? "The chain of entries is unbroken." : "The chain of entries is broken: the ledger was changed by hand.";
  const rows = answer.entries.map((entry) => [make("time", { datetime: entry.when, title: `${entry.when} UTC` }, localTime(entry.when)), entry.cohort, entry.purpose,
    entry.mechanism ?? "–", makeDigest(entry.digest), lossOf(entry), entry.delta ? claim(entry.delta) : "–"]);
  const table = makeTable("Entries of the ledger", ["when", "cohort", "purpose", "mechanism", "digest"], ["epsilon", "delta"], rows);
  const scroll = make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Entries of the ledger" }, table);
  at("ledger-area").replaceChildren(make("p", { class: "sentence" }, answer.sentence),
    make("p", { class: answer.verified ? "note" : "error" }, verified), ...answer.cohorts.map(makeCohort), rows.length ? scroll : "");
  tell("ledger", answer.sentence);
}

// The first eight characters, and a button that copies them all.
function makeDigest(digest) {
  const copy = async (event) => {
    const button = event.currentTarget;
    await navigator.clipboard?.writeText(digest).catch(() => {});
    button.textContent = "Copied";
    announce("The digest is copied.");
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  };
  return make("span", { class: "digest" }, make("code", { title: digest }, digest.slice(0, 8)), " ",
    make("button", { type: "button", class: "small", "aria-label": `Copy the digest that begins with ${digest.slice(0, 8)}`, click: copy }, "Copy"));
}

// A concentrated loss is a rho alone, and has no epsilon of its own.
const lossOf = ({ epsilon, rho }) => (epsilon !== null ? claim(epsilon) : rho !== null ? `rho ${claim(rho)}` : "–");

function makeCohort({ name, epsilon, delta, limit }) {
  const of = limit === null ? "" : ` of ${short(limit)}`;
  const spent = epsilon === null ? `${name}: losses that do not add up to one epsilon${of ? `; the limit is ${short(limit)}` : ""}`
    : `${name}: epsilon ${claim(epsilon)}${delta ? ` at delta ${claim(delta)}` : ""} spent${of}`;
  const meter = limit === null || epsilon === null ? null : make("meter", { min: 0, max: limit, high: 0.8 * limit, value: epsilon, "aria-label": spent });
  return make("div", { class: "cohort" }, make("p", {}, spent), meter);
}
