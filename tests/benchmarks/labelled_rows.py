"""The rows that the project's labels are of: the labelled sets, and sets that are read elsewhere, by reference.

`filter_labels.tsv` names a row by its id and the hash of its statement and answer, and holds none of its text:

    id      set/…, as the shared sets have it; of sets elsewhere, set/number from 0
    hash    `row_hash`, so that a row of another release is noticed
    label   `KEEP`, or the reason why the row cannot be used as it stands
    how     ``read`` (somebody read the row), ``after`` (read last, verdicts hidden: no rule was mended with it since,
            nothing is trained on it) or ``set`` (every such row of the set is one)
    weight  rows that this one stands for, where it was drawn by chance out of its stratum; empty where it was chosen

The sets of `elsewhere.tsv` may not be copied here. Their files are looked for in a folder, under the names in it, and
its column ``source`` is where they come from. `math_bare` are the rows of math_train with a figure, without its
code, by math_train's numbers.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars as pl

from curation.filters.statements import figures
from curation.records import PROBLEM
from curation.sources.rows import parse_options

LABELS = Path(__file__).with_name("filter_labels.tsv")
KEEP = "keep"

ELSEWHERE = pl.read_csv(Path(__file__).with_name("elsewhere.tsv"), separator="\t")
_STATEMENTS = "problem informal_statement question original_text text content Question problem_text Problem Q".split()
_ANSWERS = "answer informal_solution ans Answer golden answer_number A".split()


def row_hash(statement: str | None, answer: str | None) -> str:
    """Return eight hexadecimal digits of a row's statement and answer."""
    text = json.dumps([statement, answer], ensure_ascii=False)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def load_elsewhere(folder: Path) -> pl.DataFrame:
    """Read those sets of `ELSEWHERE` that are in the folder, as `bench_filters.load` reads the others."""
    rows = []
    for name, file, lang in ELSEWHERE.select("name", "file", "lang").rows():
        path = folder / file
        if path.exists():
            rows += [_row(name, lang, number, content) for number, content in enumerate(_contents(path))]
    frame = pl.DataFrame(rows, schema=PROBLEM)
    return pl.concat([frame, _without_figures(frame.filter(pl.col("source") == "math_train"))])


def _without_figures(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with a figure, its code taken away, as sets come that lost their figures."""
    drawn = rows.filter(pl.col("statement").str.contains("\\begin{tabular", literal=True).not_()).with_row_index("_at")
    texts, code = figures.take_out(drawn)
    bare = pl.col("statement").str.replace_all(figures.FIGURE, " ", literal=True).str.replace_all(r"\s+", " ")
    found = texts.filter(pl.col("_at").is_in(list(code))).with_columns(bare.str.strip_chars().alias("statement"))
    return found.with_columns(id=pl.format("math_bare/{}", "row"), source=pl.lit("math_bare")).select(rows.columns)


def _contents(path: Path) -> list[dict[str, Any]]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".xml":
        parts = [{part.tag: part.text or "" for part in item} for item in ElementTree.fromstring(text).iter("Problem")]
        return [{"problem": f"{item['Body']} {item['Question']}", "answer": item["Answer"]} for item in parts]
    if text.startswith("{") and not text.startswith("{\n"):
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    if path.suffix == ".csv":
        return [line | {"options": [line[letter] for letter in "ABCD"]} for line in csv.DictReader(text.splitlines())]
    content: Any = json.loads(text)
    return content.get("example", list(content.values())) if isinstance(content, dict) else content


def _row(name: str, lang: str, number: int, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return one row in the `PROBLEM` schema; where the answer is a list, its items, of minerva the last of them."""
    if name.startswith("draw"):
        content = content.get("original", content)
        content = {"problem": content["sQuestion"], "answer": content["lSolutions"]}
    statement = next((content[key] for key in _STATEMENTS if content.get(key)), None)
    answer = next((content[key] for key in _ANSWERS if key in content), None)
    answer = content["label"] if answer is None and content.get("label") else answer
    if isinstance(answer, list):
        answer = str(answer[-1]) if name == "minerva" else ", ".join(map(str, answer))
    choices = content.get("options") or content.get("choices")
    if name.startswith("mathqa"):
        answer = content["correct"]
    if isinstance(choices, str):
        choices = parse_options(choices, name)
    if isinstance(answer, int) and choices and name == "mmlu_stem":
        answer = "ABCD"[answer]
    answer = None if answer in (None, "None.") else str(answer).strip()
    texts = {"statement": statement, "answer": answer, "choices": choices, "lang": lang, "meta": "null"}
    return {"id": f"{name}/{number}", "source": name, "row": number, **texts}
