"""The command: `python -m reproduction` computes the paper again and writes a page, pictures and numbers."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2

import cellrisk as cr
from reproduction.bankruptcy import URL, WHERE, Rows, fetch_bankruptcy, read_bankruptcy
from reproduction.claims import AGREES, DIFFERS, ON_CONDITION, evaluate
from reproduction.experiments import compute
from reproduction.figures import draw_all, write_csv


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit code."""
    parser = argparse.ArgumentParser("python -m reproduction", description="Every figure and number of the paper.")
    parser.add_argument("--output", metavar="FOLDER", default="build/reproduction", help="default: %(default)s")
    parser.add_argument("--bankruptcy", metavar="FILE", help="UCI's Qualitative Bankruptcy; then nothing is fetched")
    parser.add_argument("--offline", action="store_true", help="fetch nothing; without a file, reproduce Adult alone")
    parser.add_argument("--points", type=int, default=501, help="epsilons on each curve (default: %(default)s)")
    parser.add_argument("--releases", type=int, default=100, help="behind the box plots (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the simulated releases (default: %(default)s)")
    given = parser.parse_args(arguments)
    try:
        reproduce(given)
    except (cr.CellriskError, OSError) as error:
        print(f"reproduction: {error}", file=sys.stderr)
        return 2
    return 0


def reproduce(given: argparse.Namespace) -> None:
    """Compute, write and print everything."""
    folder, settings = Path(given.output), {name: getattr(given, name) for name in ("points", "releases", "seed")}
    for (name, value), least in zip(settings.items(), (2, 1, 0), strict=True):
        if value < least:
            raise cr.InvalidInput(f"--{name} is too small", got=value, allowed=f"{least} or more")
    if folder.exists() and not (folder / "statements.csv").is_file():
        raise cr.InvalidInput("the output folder holds something else", got=folder, fix="choose another with --output")
    rows, source, missing = find_records(given)
    print("Computing curves and drawing figures, which takes a minute or two.", file=sys.stderr)
    results = compute(rows, source, **settings)
    statements = list(evaluate(results))
    folder.mkdir(parents=True, exist_ok=True)
    counts = Counter(statement["verdict"] for statement in statements)
    partly = f"{counts[ON_CONDITION]} agree in part or on a condition that the paper does not state"
    sentence = f"Of {len(statements)} numbers and claims of the paper, {counts[AGREES]} agree with ours, {partly}, "
    sentence += f"and {counts[DIFFERS]} do not agree."
    found: dict[str, Any] = {"sentence": sentence, "missing": missing, "verdicts": counts, "statements": statements}
    found["experiments"] = [experiment.to_dict() for experiment in results.experiments]
    found |= {"pictures": list(draw_all(results, folder)), **settings}
    write_csv(folder / "statements.csv", statements)
    (folder / "results.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    template = jinja2.Template(Path(__file__).with_name("page.html.j2").read_text(encoding="utf-8"), autoescape=True)
    page = template.render(version=cr.__version__, **found)
    (folder / "index.html").write_text(page, encoding="utf-8")
    differing = [each for each in statements if each["verdict"] == DIFFERS]
    lines = [f"{each['claim']}: paper {each['paper']}, ours {each['ours']}" for each in differing]
    print(sentence, missing, "Does not agree:", *lines, f"Written to {folder / 'index.html'}.", sep="\n")


def find_records(given: argparse.Namespace) -> tuple[Rows | None, str, str]:
    """Return the records of Bankruptcy, where they come from, and why they are missing, if they are."""
    if given.bankruptcy is not None:
        return read_bankruptcy(given.bankruptcy), Path(given.bankruptcy).name, ""
    why = "nothing was fetched"
    if not given.offline:
        print(f"Fetching Qualitative Bankruptcy from UCI ({URL}).", file=sys.stderr)
        try:
            return fetch_bankruptcy(), "UCI", ""
        except cr.InvalidInput as refusal:
            why = str(refusal)
    return None, "", f"Bankruptcy and its subset are missing: {why}. Give the data with --bankruptcy FILE; {WHERE}."


if __name__ == "__main__":
    sys.exit(main())
