"""Miniatures of the data sets that the shipped recipes name: rows of our own in each one's exact schema.

`miniature.jsonl` has a file of a data set in each line: its path, configuration, columns and rows. Columns, nesting and
types are those of the sets' pages; nothing of the sets is in the statements, tests and programs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from tests.places import ROOT

RECIPES = ROOT / "flows" / "recipes"
SETS = [json.loads(line) for line in Path(__file__).with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()]
BENCH = "HuggingFaceH4/aime_2024"


def write(mini: Mapping[str, Any], folder: Path) -> None:
    """Write a file below the set's folder, and its configuration on the set's page."""
    path = folder / mini["set"] / mini["file"]
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in mini["rows"]))
    else:
        schema = pa.schema([(name, _type(kind)) for name, kind in mini["columns"].items()])
        pyarrow.parquet.write_table(pa.Table.from_pylist(mini["rows"], schema=schema), path)
    if mini["config"] is not None:
        page = folder / mini["set"] / "README.md"
        head = page.read_text() if page.exists() else "---\nconfigs:\n---\n"
        entry = f"- config_name: {mini['config']}\n  data_files:\n  - split: train\n    path: {mini['file']}\n"
        page.write_text(head.removesuffix("---\n") + entry + "---\n")


def _type(kind: Any) -> pa.DataType:
    """Return a column's type: a name, a list of a type, or a struct's fields."""
    if isinstance(kind, list):
        return pa.list_(_type(kind[0]))
    if isinstance(kind, dict):
        return pa.struct([(name, _type(one)) for name, one in kind.items()])
    return pa.type_for_alias(kind)


def local_recipe(name: str, folder: Path) -> Path:
    """Write a shipped recipe into a folder with its data sets next to it; only what names them is changed.

    Paths of the hub become those of the miniatures; commits go, and a bench that has no miniature is left out.
    """
    text = (RECIPES / f"{name}.toml").read_text()
    for mini in SETS:
        if f'path = "{mini["set"]}"' in text or mini["set"] == BENCH:
            write(mini, folder)
    sources, models, rest = text.partition("[models.")
    text = re.sub(r"(?m)^revision = .*\n", "", sources) + models + rest
    text = re.sub(r"(?m)^benches = .*$", 'benches = ["./aime24.toml"]', text)
    bench = (ROOT / "flows" / "benches" / "aime24.toml").read_text()
    bench = re.sub(r"(?m)^revision = .*\n", "", bench).replace('path = "Hugging', 'path = "./Hugging')
    (folder / "aime24.toml").write_text(bench)
    (folder / "grader_7b.toml").write_text((RECIPES / "grader_7b.toml").read_text())
    path = folder / f"{name}.toml"
    path.write_text(text)
    return path
