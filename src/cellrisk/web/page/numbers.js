// Numbers and sizes in words.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const threeDigits = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });
const sixDigits = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 6 });
const SUPERSCRIPTS = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

export const count = (number) => whole.format(number);

// Rounded as the command rounds: what lies just between two numbers goes to the even one. Such a number is a fraction of a
// power of two, which is looked at first, because to multiply by ten may round.
function round(number, places) {
  const scaled = number * 10 ** places;
  const between = Number.isInteger(number * 2 ** (places + 1)) && scaled % 1 === 0.5;
  return between ? (2 * Math.round(scaled / 2)) / 10 ** places : Number(number.toFixed(places));
}

// Without decimals, and never a 0 beside a share that is above it.
export const wholePeople = (number) => (number > 0 && round(number, 0) === 0 ? "fewer than 1" : count(round(number, 0)));

// A number of people as the command writes it: whole, and with digits where there are few.
export function writePeople(number) {
  if (number < 0.01) return number > 0 ? "under 0.01" : "0";
  return number >= 100 ? count(round(number, 0)) : String(round(number, (number >= 1 ? 2 : 1) - Math.floor(Math.log10(number))));
}

export const ofPeople = (number) => withNoun(number < 0 ? count(number) : writePeople(number), "person", "people");
export const ofCells = (number) => withNoun(count(number), "cell", "cells");
const withNoun = (told, one, several) => `${told} ${told === "1" ? one : several}`;

// As the command line writes it: one decimal, and more where that would hide a small risk.
export function percent(share) {
  if (share > 0 && share < 0.001) return share >= 1e-6 ? `${Number((100 * share).toPrecision(1))}%` : "under 0.0001%";
  return `${(100 * share).toFixed(1)}%`;
}

// A limit as it was given.
export const givenPercent = (share) => `${Number((100 * share).toPrecision(12))}%`;

// A bound: one decimal, never too low.
export const mostPercent = (share) => `${(Math.ceil(1000 * share - 1e-9) / 10).toFixed(1)}%`;

// Three significant digits, and a power of ten where zeros would be counted.
export const short = (number) => write(number, 3, threeDigits);

// An epsilon, delta or rho that is promised, as the command writes it: six digits, and no smaller than it is.
export function claim(number) {
  const [digits, power] = number.toExponential().split("e");
  const nearest = Number(number.toPrecision(6));
  return write(nearest >= number * (1 - 1e-12) ? nearest : Number(`${Math.ceil(digits * 1e5)}e${power - 5}`), 6, sixDigits);
}

function write(number, most, format) {
  if (number === 0 || (Math.abs(number) >= 1e-4 && Math.abs(number) < 1e6)) return format.format(number);
  const [digits, power] = number.toExponential(most - 1).split("e");
  const raised = [...String(Number(power))].map((sign) => SUPERSCRIPTS[sign]).join("");
  return Number(digits) === 1 ? `10${raised}` : `${Number(digits)} × 10${raised}`;
}

// The end of an interval, so rounded that it stays inside, to five digits as the sentences have it.
export function inward(number, round) {
  const power = Math.floor(Math.log10(number)) - 4;
  const digits = round(Number((number / 10 ** power).toFixed(6)));
  return String(Number(`${digits}e${power}`));
}

export function size(bytes) {
  const units = ["bytes", "kB", "MB", "GB"];
  let unit = 0;
  while (bytes >= 1000 && unit < units.length - 1) [bytes, unit] = [bytes / 1000, unit + 1];
  return `${threeDigits.format(bytes)} ${units[unit]}`;
}

// A moment in the reader's own time and way, to the minute.
export function localTime(text) {
  const moment = new Date(text);
  return Number.isNaN(moment.valueOf()) ? text : moment.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
}
