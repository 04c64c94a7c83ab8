"""`goldilocks verify language`, as a function on real files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curation.records import SourceError
from flows.cli.files import detect_language_file


def test_rows_gain_their_language(tmp_path: Path) -> None:
    texts = ["Combien de pommes reste-t-il ?", "$x^2$", "How many are left?", None]
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    path.write_text("".join(json.dumps({"n": n, "text": text}) + "\n" for n, text in enumerate(texts)))
    counts = detect_language_file(path, out)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["lang"] for row in rows] == ["fr", "undetermined", "en", "undetermined"]
    assert [row["n"] for row in rows] == [0, 1, 2, 3]
    assert 0 < rows[0]["confidence"] <= 1
    assert counts == {"undetermined": 2, "fr": 1, "en": 1}
    with pytest.raises(SourceError, match="no row has `body`"):
        detect_language_file(path, out, field="body")
