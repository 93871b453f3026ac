// The riskiest cells of the table, shown one by one.
import { at, make, makeTable, showNote, write } from "./elements.js";
import { askTable, work } from "./server.js";
import { page, presentSetting } from "./state.js";

// The cells of a very large table are read when the user asks for them.
export async function showRiskiest() {
  const place = at("riskiest-status");
  if (!page.table.few && !page.hasCells) {
    const read = () => { page.hasCells = true; showRiskiest(); };
    return showNote(place, `The table has ${page.table.cells}; to show some, all have to be read. `,
      make("button", { type: "button", class: "small", click: read }, "Read the cells"));
  }
  const answer = await work(place, page.table.few ? null : "Reading the cells", () => askTable("riskiest", { ...presentSetting(), top: Number(at("top").value) }));
  if (!answer) return null;
  write("riskiest-about", answer.about);
  return at("riskiest").replaceChildren(makeTable("The riskiest cells", answer.words, answer.numbers, answer.rows));
}
