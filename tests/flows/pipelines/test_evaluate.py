"""Evaluations on small real benches: figures by hand, the same bytes again, code with packed tests, what is refused."""

from __future__ import annotations

import base64
import json
import pickle
import shutil
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from transformers import AutoTokenizer

from curation.config import AttemptColumns, RecordedModel
from curation.config.loading import parse_settings
from curation.policies.chat_templates import apply_chat_template
from curation.prompts.asked import with_system_message, write_asked
from curation.prompts.solving import prompt_of
from curation.records import PROBLEM, ConfigError, SourceError, StoreError
from curation.storage.stages import read_table
from flows.cli.entry import evaluate_command as evaluate_bench
from flows.run.benches import bench_run, load_bench, ready_names
from flows.run.pipeline import run_pipeline
from flows.run.recipe import load_recipe
from flows.run.run_folder import Run
from flows.stages.bench import BENCH_ROWS
from flows.stages.decontamination import benchmarks_of
from flows.stages.sources import SOURCES
from tests.flows.conftest import TINY_RECIPE, write_jsonl
from tests.flows.run.folders import contents, times
from tests.training.students import student
from training.embedded_model import WEIGHTS
from training.recipe import TrainRecipe

PROBLEMS = {
    "What is twelve apples plus thirty apples, in apples?": ("42", ["42", "42", "41", "41", "41", None]),
    "How many sides has a regular dodecagon drawn on paper?": ("12", ["12", "12.0", "$12$", "13", None, None]),
    "Combien font sept fois huit, en chiffres arabes ?": ("56", ["54", "55", "57", "58", "59", "60"]),
}
BENCH = Path(__file__).with_name("small.toml").read_text(encoding="utf-8")


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    rows = [{"q": q, "a": a, "lang": "fr" if "font" in q else "en"} for q, (a, _) in PROBLEMS.items()]
    write_jsonl(tmp_path / "rows.jsonl", [*rows, rows[0], {"q": "", "a": "1", "lang": "en"}])
    path = tmp_path / "bench.toml"
    path.write_text(BENCH, encoding="utf-8")
    return path


@pytest.fixture
def attempts(tmp_path: Path) -> Path:
    rows = [
        {"problem": q, "text": f"<think>x</think> \\boxed{{{answer}}}" if answer else "<think>I cannot tell."}
        for q, (_, answers) in PROBLEMS.items()
        for answer in answers
    ]
    return write_jsonl(tmp_path / "attempts.jsonl", rows)


def evaluated(
    bench: Path, attempts: Path, out: Path, against: Path | None = None, trained_on: Sequence[Path] = ()
) -> Any:
    """The figures of an evaluation of recorded attempts."""
    evaluate_bench(str(bench), None, attempts, [], out, [], against, trained_on)
    return json.loads((out / "evaluation" / "evaluation.json").read_text(encoding="utf-8"))


def test_the_figures_are_those_by_hand(bench: Path, attempts: Path, tmp_path: Path) -> None:
    figures = evaluated(bench, attempts, tmp_path / "out")
    assert (figures["problems"], figures["attempts"]) == (3, 18)
    assert figures["pass_1"]["mean"] == pytest.approx((2 / 6 + 3 / 6 + 0) / 3)
    assert figures["pass_k"]["2"]["mean"] == pytest.approx((1 - 6 / 15 + 1 - 3 / 15 + 0) / 3)
    # of six: 41 beats 42 in the first; 12 = 12.0 = $12$ wins the second; the third has no right vote
    assert figures["majority_k"]["6"]["mean"] == pytest.approx(1 / 3)
    # pairs of the first: 1 right-right, 2 right-silent, 6 ties with 41 at one vote each
    assert figures["majority_k"]["2"]["mean"] == pytest.approx(((1 + 2 + 3) / 15 + (3 + 6 + 1.5) / 15 + 0) / 3)
    assert figures["format_share"] == pytest.approx(15 / 18)
    assert figures["tokens"] is None
    assert [item["lang"] for item in figures["languages"]] == ["en", "fr"]
    assert "dodecagon" in (tmp_path / "out" / "evaluation" / "report.html").read_text(encoding="utf-8")


def test_what_is_finished_is_not_done_again_and_gives_the_same_bytes(
    bench: Path, attempts: Path, tmp_path: Path
) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    evaluated(bench, attempts, out)
    store, before = times(out / "attempts"), contents(out / "evaluation")
    shutil.rmtree(out / "verdicts")  # as if killed before the verdicts
    shutil.rmtree(out / "evaluation")
    for folder in (out, other):
        evaluated(bench, attempts, folder)
        assert contents(folder / "evaluation") == before
    assert times(out / "attempts") == store


def test_two_policies_are_compared_problem_by_problem(bench: Path, attempts: Path, tmp_path: Path) -> None:
    evaluated(bench, attempts, tmp_path / "first")
    asked = list(PROBLEMS.items())[:2]
    better = [{"problem": q, "answer": a if n < 5 else "0"} for q, (a, _) in asked for n in range(6)]
    path = write_jsonl(tmp_path / "better.jsonl", better)
    paired = evaluated(bench, path, tmp_path / "second", tmp_path / "first")["compared"]["differences"]["pass@1"]
    assert paired["count"] == 2
    assert paired["mean"] == pytest.approx((5 / 6 - 2 / 6 + 5 / 6 - 3 / 6) / 2)
    with pytest.raises(StoreError, match="holds no finished evaluation"):
        evaluated(bench, path, tmp_path / "second", against=tmp_path)


def test_a_trained_model_is_asked_as_it_was_trained_and_another_prompt_is_marked(
    bench: Path, attempts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained = {"kind": "torch", "model": "embedded", "prompt": {"file": "own.txt", "text": 'Say "\u00e9" \\ {%.'}}
    recipe = {"name": "x", "steps": 1, "model": "student", "models": {"student": {**trained, "thinking": "[T]"}}}
    settings = parse_settings(TrainRecipe, {**recipe, "data": {"kind": "embedded"}}, "a recipe").trained
    folder = tmp_path / "run" / "model"
    shutil.copytree(WEIGHTS, folder)
    for _ in range(2):  # a model that is trained again has one system message
        write_asked(folder, settings, "boxed")
    template = AutoTokenizer.from_pretrained(folder).chat_template
    assert template.count("system message of the training") == 1
    echo = "{% for m in messages %}[{{ m['role'] }}: {{ m['content'] }}]{% endfor %}"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = with_system_message(echo, settings.prompt.text)
    chat, own = [{"role": "user", "content": "?"}], {"role": "system", "content": "S"}
    shown = f"[system: {settings.prompt.text}][user: ?]"
    assert tokenizer.apply_chat_template(chat, tokenize=False) == shown  # other software sends the problem alone
    assert apply_chat_template(tokenizer, chat, tokenize=False) == "[user: ?]"  # `prompt = "plain"` means that
    assert tokenizer.apply_chat_template([own, *chat], tokenize=False) == "[system: S][user: ?]"

    evaluated(bench, attempts, tmp_path / "recorded")
    out = tmp_path / "out"
    table = 'model = "own"\n[models.own]\nkind = "torch"\nmodel = "embedded"\ndecoding = { max_tokens = 24 }\n'
    bench.write_text(BENCH.replace("[[sources]]", table + "[[sources]]"), encoding="utf-8")
    evaluate_bench(str(bench), folder, None, [], out, ["attempts=2", "k=[]"], tmp_path / "recorded", [])
    figures = json.loads((out / "evaluation" / "evaluation.json").read_text(encoding="utf-8"))
    assert figures["prompt"] == prompt_of(settings).version
    assert figures["compared"]["remark"].startswith("prompts differ: recorded there, file@")
    assert "prompts differ" in capsys.readouterr().out


def test_attempts_at_other_problems_are_counted_and_a_file_of_nothing_else_is_refused(
    bench: Path, attempts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = [{"problem": "How much is one and one, dear reader?", "text": "<think>x</think> \\boxed{2}"}] * 2
    rows = [json.loads(line) for line in attempts.read_text(encoding="utf-8").splitlines()]
    more = write_jsonl(tmp_path / "more.jsonl", [*rows, *other])
    assert evaluated(bench, more, tmp_path / "out")["attempts"] == 18
    printed = capsys.readouterr().out
    assert "2 of the file's 20 attempts are not of the bench's problems" in printed
    assert "left out of the bench: 1 duplicate, 1" in printed
    few = [{"problem": q, "answer": a} for q, (a, _) in PROBLEMS.items()]
    for name, recorded, message in (
        ("strangers", other, "none of its 2 attempts is of a problem of bench small; its column `problem`"),
        ("few", few, "k = 2 of 1 attempts"),
    ):
        with pytest.raises(ConfigError, match=message):
            evaluated(bench, write_jsonl(tmp_path / f"{name}.jsonl", recorded), tmp_path / name)


def curated(folder: Path, statements: Sequence[str]) -> Path:
    rows = [
        {**dict.fromkeys(PROBLEM), "id": f"{n:032}", "group": f"{n:032}", "domain": "math", "statement": text}
        | {"answer": "1", "lang": "en", "source": "s", "row": n}
        for n, text in enumerate(statements)
    ]
    (folder / "data").mkdir(parents=True)
    pl.DataFrame(rows, schema=PROBLEM).write_parquet(folder / "data" / "train-00000-of-00001.parquet")
    return folder


def test_a_bench_that_the_set_was_trained_on_is_refused(bench: Path, attempts: Path, tmp_path: Path) -> None:
    known = "How many sides has a regular dodecagon  drawn on paper? Answer!"
    leaked = curated(tmp_path / "leaked", ["Something else entirely, about cats and dogs.", known])
    with pytest.raises(ConfigError, match=r"1 of its 3 problems are in .*leaked.*decontamination\.benches"):
        evaluated(bench, attempts, tmp_path / "out", trained_on=[leaked])
    clean = curated(tmp_path / "clean", ["How many cats chase nine dogs around the old garden fence today?"])
    evaluated(bench, attempts, tmp_path / "out", trained_on=[clean])

    model = tmp_path / "training" / "model"  # it leads to the set that it was trained on
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}", encoding="utf-8")
    recipe = {"name": "x", "steps": 1, **student(), "data": {"kind": "curated", "folders": [str(leaked)]}}
    run = {"kind": "training", "recipe_folder": str(tmp_path), "recipe": recipe}
    (model.parent / "run.json").write_text(json.dumps(run), encoding="utf-8")
    with pytest.raises(ConfigError, match="1 of its 3 problems"):
        evaluate_bench(str(bench), model, None, [], tmp_path / "out", [], None, [])


CODE_BENCH = Path(__file__).with_name("programs.toml").read_text(encoding="utf-8")


def test_programs_are_judged_by_all_tests_packed_ones_too(tmp_path: Path) -> None:
    private = [{"input": "5 6\n", "output": "11\n"}, {"input": "1 -1\n", "output": "0\n"}]
    row = {
        "question": "Read two whole numbers from standard input and print their sum on one line.",
        "public": json.dumps([{"input": "1 2\n", "output": "3\n"}]),
        "private": base64.b64encode(zlib.compress(pickle.dumps(json.dumps(private)))).decode(),
        "contest_date": "2025-01-05T00:00:00",
    }
    old = {**row, "question": "Read two whole numbers and print the larger one.", "contest_date": "2023-01-05"}
    write_jsonl(tmp_path / "rows.jsonl", [row, old])
    (tmp_path / "bench.toml").write_text(CODE_BENCH, encoding="utf-8")
    asked = f"{row['question']}\n\nWrite the program in Python 3."
    right, cheat = "a, b = map(int, input().split())\nprint(a + b)", "print(3)"  # it passes the public test alone
    texts = [f"```python\n{program}\n```" for program in (right, cheat, right)]
    path = write_jsonl(tmp_path / "attempts.jsonl", [{"problem": asked, "text": text} for text in texts])
    figures = evaluated(tmp_path / "bench.toml", path, tmp_path / "out")
    assert figures["problems"] == 1
    assert figures["pass_1"]["mean"] == pytest.approx(2 / 3)
    page = (tmp_path / "out" / "evaluation" / "report.html").read_text(encoding="utf-8")
    assert "1 outside_window" in page


def test_options_in_columns_are_shuffled_by_the_seed(bench: Path, tmp_path: Path) -> None:
    symbol = "Which element has the symbol of test number {}?"
    rows = [{"q": symbol.format(n), "right": "gold", "w1": "iron", "w2": "tin"} for n in range(12)]
    write_jsonl(tmp_path / "rows.jsonl", rows)
    text = BENCH.replace("k = [2, 6]", 'choices = { right = "right", wrong = ["w1", "w2"] }')
    text = text.replace('answer = "a", lang = "lang"', 'meta = ["right", "w1", "w2"]').replace("= 6", "= 1")
    bench.write_text(text, encoding="utf-8")
    loaded, folder = load_bench(str(bench))
    policy = RecordedModel(kind="recorded", name="a@b", path="none", columns=AttemptColumns(text="text"))
    results = run_pipeline(bench_run(loaded, policy, tmp_path / "run", folder), (SOURCES, BENCH_ROWS))
    problems = read_table(results.problems.folder, "kept")
    for statement, answer, right in problems.select("statement", "answer", "raw_answer").iter_rows():
        assert f"{answer}) {right}" in statement
    assert problems["answer"].n_unique() == 3


def test_ready_benches_are_pinned_and_one_without_its_commit_is_refused(tmp_path: Path) -> None:
    for name in ready_names("bench"):
        bench, _ = load_bench(name)
        assert bench.name == name.replace("_", "-")
        assert all(source.revision or source.kind != "dataset" for source in bench.sources)
    text = 'name = "x"\n[[sources]]\nname = "x"\nkind = "dataset"\npath = "someone/something"\n'
    (tmp_path / "bench.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="needs its commit"):
        load_bench(str(tmp_path / "bench.toml"))


def test_a_file_that_must_be_fetched_is_named_with_its_source(attempts: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="accept its terms"):
        evaluate_bench("gpqa_diamond", None, attempts, [], tmp_path / "out", ["sources.0.path=/nowhere.csv"], None, [])


def test_benches_feed_the_contamination_list(tmp_path: Path, bench: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    benches = 'decontamination.benches = ["demo", "bench.toml"]'
    recipe.write_text(f"{benches}\n{TINY_RECIPE}", encoding="utf-8")
    found = benchmarks_of(Run(tmp_path / "run", load_recipe(recipe), tmp_path))
    assert [(one.name, one.columns.statement) for one, _ in found] == [("demo/sums", "problem"), ("small/rows", "q")]
    assert all((home / one.path).is_file() for one, home in found)
