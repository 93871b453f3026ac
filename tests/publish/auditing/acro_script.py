"""Loads a folder of records with ACRO, as an output checker's tool does, and prints what it found as JSON."""

from __future__ import annotations

import json
import sys


def main(folder: str) -> None:
    from acro.record import load_records

    found = {}
    for name, record in load_records(folder).results.items():
        (table,) = record.output
        found[name] = {
            "status": record.status,
            "type": record.output_type,
            "summary": record.summary,
            "exception": record.exception,
            "command": record.command,
            "comments": record.comments,
            "properties": record.properties,
            "sdc": record.sdc,
            "outcome": json.loads(record.outcome.to_json()),
            "table": json.loads(table.to_json(orient="split")),
        }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
