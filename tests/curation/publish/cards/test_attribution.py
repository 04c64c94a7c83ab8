"""ATTRIBUTION.md: sources, licences, what was changed."""

from __future__ import annotations

import polars as pl

from curation.publish.cards.card import attribution
from curation.publish.export import CURATED


def test_every_source_is_named_with_the_licences_of_its_rows() -> None:
    rows = [
        {"source": "a", "license": "MIT", "also_from": [{"source": "c", "row": 3, "license": "CC-BY-SA-4.0"}]},
        {
            "source": "a",
            "license": "MIT",
            "also_from": [{"source": "a", "row": 9, "license": "MIT"}],
            "raw_answer": "B",
        },
        {"source": "a", "license": "CC-BY-NC-4.0", "raw_statement": "Old"},
        {"source": "b", "license": "CC-BY-4.0"},
    ]
    curated = pl.DataFrame([{name: row.get(name) for name in CURATED} for row in rows], schema=CURATED)
    origins = [("a", "https://a.test/x|y", "0123abc"), *((name, f"{name}.jsonl", None) for name in "bcd")]
    lines = attribution("Sums", "apache-2.0", curated.lazy(), origins).splitlines()
    table = [line for line in lines if line.startswith("| ")][1:]
    assert table == [
        "| a | https://a.test/x\\|y | 0123abc | MIT | 2 | 1 | 1 |",
        "| a | https://a.test/x\\|y | 0123abc | CC-BY-NC-4.0 (allows non-commercial use only) | 1 | 1 | 0 |",
        "| b | b.jsonl | not pinned | CC-BY-4.0 | 1 | 0 | 0 |",
        "| c | c.jsonl | not pinned | CC-BY-SA-4.0 (must be shared alike) | 0 | 0 | 1 |",
        "| d | d.jsonl | not pinned | – | 0 | 0 | 0 |",
    ]
