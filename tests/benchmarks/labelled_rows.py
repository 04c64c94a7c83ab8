"""The rows that the project's labels are of: the labelled sets, and sets that are read where they lie, by reference.

`filter_labels.tsv` names a row by its id and the hash of its statement and answer, and holds none of its text:

    id      set/…, as the shared sets have it; of the sets below, set/number from 0
    hash    `row_hash`, so that a row of another release is noticed
    label   `KEEP`, or the reason why the row cannot be used as it stands
    how     ``read`` (somebody read the row) or ``set`` (every such row of the set is one)
    weight  rows that this one stands for, where it was drawn by chance out of its stratum; empty where it was chosen

The sets below may not be copied here. Their files are looked for in a folder under the names of `ELSEWHERE`:

    putnam            trishullab/PutnamBench, informal/putnam.json
    olympiad_bench    agentica-project/rllm, rllm/data/test/math/olympiad_bench.json; so minerva, amc
    math_train        agentica-project/rllm, rllm/data/train/math/math.json; so aime
    gaokao_*_I, _II   OpenLMLab/GAOKAO-Bench, Data/…/2010-2022_Math_I_MCQs.json and the like
    agieval_*         ruixiangcui/AGIEval, data/v1/sat-math.jsonl, gaokao-mathcloze.jsonl
    math_bare         the rows of math_train with a figure, without its code: by math_train's numbers
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from curation.filters.statements import figures
from curation.records import PROBLEM

LABELS = Path(__file__).with_name("filter_labels.tsv")
KEEP = "keep"

ELSEWHERE: Mapping[str, str] = {
    "putnam": "putnam.json",
    "olympiad_bench": "test_math_olympiad_bench.json",
    "minerva": "test_math_minerva.json",
    "amc": "test_math_amc.json",
    "math_train": "train_math_math.json",
    "aime": "train_math_aime.json",
    **{
        f"gaokao_{kind}_{part}": f"gaokao_{kind}_{part}.json"
        for kind in ("mcq", "fill", "open")
        for part in ("I", "II")
    },
    "agieval_sat": "agieval_sat-math.jsonl",
    "agieval_cloze": "agieval_gaokao-mathcloze.jsonl",
}
_LANGUAGES = {"gaokao": "zh", "agieval_cloze": "zh"}


def row_hash(statement: str | None, answer: str | None) -> str:
    """Return eight hexadecimal digits of a row's statement and answer."""
    text = json.dumps([statement, answer], ensure_ascii=False)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def load_elsewhere(folder: Path) -> pl.DataFrame:
    """Read those sets of `ELSEWHERE` that lie in the folder, as `bench_filters.load` reads the others."""
    rows = []
    for name, file in ELSEWHERE.items():
        path = folder / file
        if path.exists():
            rows += [_row(name, number, content) for number, content in enumerate(_contents(path))]
    frame = pl.DataFrame(rows, schema={**PROBLEM, "kind": pl.String})
    return pl.concat([frame, _without_figures(frame.filter(pl.col("source") == "math_train"))])


def _without_figures(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with a figure, its code taken away, as sets come that lost their figures."""
    drawn = rows.filter(pl.col("statement").str.contains("\\begin{tabular", literal=True).not_()).with_row_index("_at")
    texts, code = figures.take_out(drawn)
    bare = pl.col("statement").str.replace_all(figures.FIGURE, " ", literal=True).str.replace_all(r"\s+", " ")
    changed = {
        "id": pl.format("math_bare/{}", "row"),
        "statement": bare.str.strip_chars(),
        "source": pl.lit("math_bare"),
    }
    return texts.filter(pl.col("_at").is_in(list(code))).with_columns(**changed).select(rows.columns)


def _contents(path: Path) -> list[dict[str, Any]]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    content = json.loads(text)
    rows: list[dict[str, Any]] = content["example"] if isinstance(content, dict) else content
    return rows


def _row(name: str, number: int, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return one row in the `PROBLEM` schema; where the answer is a list, its items, of minerva the last of them."""
    statement = content.get("problem") or content.get("informal_statement") or content.get("question")
    answer = content.get("answer", content.get("informal_solution", content.get("label")))
    answer = content["label"] if answer is None and content.get("label") else answer
    if isinstance(answer, list):
        answer = str(answer[-1]) if name == "minerva" else ", ".join(map(str, answer))
    return dict.fromkeys(PROBLEM.names()) | {
        "id": f"{name}/{number}",
        "statement": statement,
        "answer": None if answer in (None, "None.") else str(answer).strip(),
        "choices": content.get("options"),
        "lang": next((lang for start, lang in _LANGUAGES.items() if name.startswith(start)), "en"),
        "source": name,
        "row": number,
        "meta": "null",
        "kind": "unknown",
    }
