"""The rows that the project's labels are of: the labelled sets, and sets that are read where they lie, by reference.

`filter_labels.tsv` names a row by its id and the hash of its statement and answer, and holds none of its text:

    id      set/…, as the shared sets have it; of the sets below, set/number from 0
    hash    `row_hash`, so that a row of another release is noticed
    label   `KEEP`, or the reason why the row cannot be used as it stands
    how     ``read`` (somebody read the row), ``after`` (read last, verdicts hidden: no rule was mended with it since,
            nothing is trained on it) or ``set`` (every such row of the set is one)
    weight  rows that this one stands for, where it was drawn by chance out of its stratum; empty where it was chosen

The sets below may not be copied here. Their files are looked for in a folder under the names of `ELSEWHERE`:

    putnam            trishullab/PutnamBench, informal/putnam.json
    olympiad_bench    agentica-project/rllm, rllm/data/test/math/olympiad_bench.json; so minerva, amc
    math_train        agentica-project/rllm, rllm/data/train/math/math.json; so aime
    gaokao_*_I, _II   OpenLMLab/GAOKAO-Bench, Data/…/2010-2022_Math_I_MCQs.json and the like
    agieval_*         ruixiangcui/AGIEval, data/v1/sat-math.jsonl, gaokao-mathcloze.jsonl
    math_bare         the rows of math_train with a figure, without its code: by math_train's numbers
    ape_*             Chenny0808/ape210k, data/valid.ape.json
    hmwp, m23_*, mawps, dolphin_*, draw_*, alg514_*
                      LYH-YF/MWPToolkit, dataset/…; draw_* are its draw_*.orig.jsonl
    asdiv             chaochun/nlu-asdiv-dataset, dataset/ASDiv.xml
    mathqa, mmlu_stem, hungarian
                      ZubinGou/math-evaluation-harness, data/…/test.jsonl
    carp_en, college_math, gaokao2023en, cn_middle_school
                      QwenLM/Qwen2.5-Math, evaluation/data/…/test.jsonl
    mathqa_dev        shaigue/mathqa, data/MathQA/dev.json
    cmmlu_*           haonan-li/CMMLU, data/test/elementary_mathematics.csv, high_school_…, college_…
    cmath_ds          deepseek-ai/DeepSeek-Math, evaluation/datasets/cmath/test.jsonl
    limo_*            GAIR-NLP/LIMO, eval/data/…/test.jsonl
    theoremqa         TIGER-AI-Lab/TheoremQA, theoremqa_test.json
    tabmwp_*          lupantech/PromptPG, data/tabmwp/problems_test1k.json: questions without their tables
    mathv             mathllm/MATH-V, data/test.jsonl: questions without their pictures
    scibench_*        mandyyyyii/scibench, dataset/original/….json
    stackmath         yifanzhang-pro/StackMathQA, the files of data/stackmathqa100k under 4 MiB, one behind another
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

PARTS = ("test", "train", "valid")
SCIENCES = ("atkins", "chemmc", "class", "fund", "matter", "quan", "thermo")
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
    **{name: f"{name}.json" for name in ("ape_test", "ape_valid", "hmwp", "m23_test", "m23_valid", "mawps")},
    **{f"{name}_{part}": f"{name}_{part}.json" for name in ("dolphin", "draw", "alg514") for part in PARTS},
    "asdiv": "asdiv.xml",
    **{name: f"{name}.jsonl" for name in ("mathqa", "mmlu_stem", "hungarian", "carp_en", "college_math")},
    **{name: f"{name}.jsonl" for name in ("gaokao2023en", "cn_middle_school", "cmath_ds", "limo_kaoyan", "limo_gpqa")},
    "theoremqa": "theoremqa.json",
    "tabmwp_dev": "tabmwp_dev.json",
    "tabmwp_test": "tabmwp_test.json",
    "mathv": "mathv.jsonl",
    **{f"scibench_{name}": f"scibench_{name}.json" for name in ("calculus", "diff", "stat", *SCIENCES)},
    "stackmath": "stackmath.jsonl",
    "mathqa_dev": "mathqa_dev.json",
    **{f"cmmlu_{name}": f"cmmlu_{name}.csv" for name in ("elementary", "high_school", "college")},
}
_LANGUAGES = dict.fromkeys(
    ("gaokao_", "agieval_cloze", "ape_", "hmwp", "m23_", "cn_", "cmath", "cmmlu_", "limo_kao"), "zh"
)
_STATEMENTS = ("problem", "informal_statement", "question", "original_text", "text", "content", "Question",
               "problem_text", "Problem", "Q")  # fmt: skip
_ANSWERS = ("answer", "informal_solution", "ans", "Answer", "golden", "answer_number", "A")


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
    if path.suffix == ".xml":
        items = ElementTree.fromstring(text).iter("Problem")
        parts = [{part.tag: part.text or "" for part in item} for item in items]
        return [{"problem": f"{item['Body']} {item['Question']}", "answer": item["Answer"]} for item in parts]
    if text.startswith("{") and not text.startswith("{\n"):
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    if path.suffix == ".csv":
        return [line | {"options": [line[letter] for letter in "ABCD"]} for line in csv.DictReader(text.splitlines())]
    content = json.loads(text)
    rows: list[dict[str, Any]] = content
    if isinstance(content, dict):
        rows = content["example"] if "example" in content else list(content.values())
    return rows


def _row(name: str, number: int, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return one row in the `PROBLEM` schema; where the answer is a list, its items, of minerva the last of them."""
    content = content.get("original", content) if name.startswith("draw") else content
    if name.startswith("draw"):
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
    return dict.fromkeys(PROBLEM.names()) | {
        "id": f"{name}/{number}",
        "statement": statement,
        "answer": None if answer in (None, "None.") else str(answer).strip(),
        "choices": choices,
        "lang": next((lang for start, lang in _LANGUAGES.items() if name.startswith(start)), "en"),
        "source": name,
        "row": number,
        "meta": "null",
        "kind": "unknown",
    }
