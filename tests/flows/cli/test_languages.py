"""`goldilocks verify language` on real files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curation.records import SourceError
from flows.cli.tools import language


def test_rows_gain_their_language(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = ["Combien de pommes reste-t-il ?", "$x^2$", "How many are left?", None]
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    path.write_text("".join(json.dumps({"n": n, "text": text}) + "\n" for n, text in enumerate(texts)))
    language(path, out)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["lang"] for row in rows] == ["fr", "undetermined", "en", "undetermined"]
    assert [row["n"] for row in rows] == [0, 1, 2, 3]
    assert 0 < rows[0]["confidence"] <= 1
    assert capsys.readouterr().out == f"undetermined 2, fr 1, en 1: {out}\n"
    with pytest.raises(SourceError, match="no row has `body`"):
        language(path, out, field="body")
