"""`goldilocks diff` on real runs: two recipes, two versions, two verifiers, what cannot be compared."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

from curation.records import problem_id
from tests.flows.conftest import Tiny, goldilocks, refusal, stamps, tries, write_jsonl


@pytest.mark.slow
def test_what_became_too_easy_is_retired(tiny_copy: Tiny, tiny_run: Tiny, tmp_path: Path) -> None:
    before = set(tiny_run.table("data")["id"])
    tiny_copy.answer_all()
    assert tiny_copy.run().status == 0
    after = set(tiny_copy.table("data")["id"])
    assert after < before
    easy = before & set(tiny_copy.table("dropped").filter(reason="too_easy")["id"])
    assert easy
    out = tmp_path / "changes.parquet"
    text = goldilocks("diff", tiny_run.folder / "curated", tiny_copy.folder, "--out", out).out
    changes = pl.read_parquet(out)
    assert set(changes.filter(change="retired")["problem"]) == easy
    assert changes.filter(change="kept").height == len(after)
    assert f"old  {tiny_run.folder / 'curated'}: {len(before)} problems" in text
    assert f"in both {len(after)}: the same contents" in text
    versions = goldilocks("diff", f"{tiny_copy.folder}@1", f"{tiny_copy.folder}@2").out
    assert f"retired {len(easy)}" in text
    assert f"retired {len(easy)}" in versions


def test_what_is_no_set_is_one_sentence(tiny_run: Tiny, tmp_path: Path) -> None:
    here = tiny_run.folder
    assert "no data/*.parquet" in refusal("diff", tmp_path, here)
    assert "no such version; versions there: 1" in refusal("diff", f"{here}@7", here)
    assert "must end in .parquet" in refusal("diff", here, here, "--out", tmp_path / "x.jsonl")
    assert "which is read by this command" in refusal("diff", here, here, "--out", here / "curated" / "x.parquet")


OWN = """
class Texts:
    def claims(self, reference, statement):
        return True

    def judge(self, answer, reference, statement):
        return answer == reference

TEXTS = Texts()
"""
TEXTS = 'verify.judges=["own.py:TEXTS"]'
DIFFERENT = {  # the two verifiers differ on what is right here
    "What angle does the minute hand of a clock turn in 20 minutes?": ("120^\\circ", "\\frac{2\\pi}{3} 1 2 3"),
    "Find all antiderivatives of $2x$.": ("x^2+C", "x^2+K x^2+K x^3 x^4"),
}
SAME = {"What is 17 + 25?": ("42", "42 42 1 2"), "What is 5 plus 6?": ("11", "11 11 11 11")}


@pytest.mark.slow
def test_another_verifier_judges_stored_attempts_again_and_diff_names_the_verdicts(tiny_inputs: Tiny) -> None:
    run, home, folder, rows = tiny_inputs, tiny_inputs.recipe.parent, tiny_inputs.folder, {**DIFFERENT, **SAME}
    write_jsonl(home / "problems.jsonl", [{"question": text, "final": answer} for text, (answer, _) in rows.items()])
    for model in ("weak", "strong"):
        write_jsonl(home / f"{model}.jsonl", [tries(text, answer, finals) for text, (answer, finals) in rows.items()])
    (home / "own.py").write_text(OWN)
    assert run.run(TEXTS).status == 0
    before = {name: stamp for name, stamp in stamps(folder).items() if name.startswith(("attempts/", "verdicts/"))}
    assert any("/part-" in name for name in before)
    assert run.run("verify.judges=[]").status == 0
    assert before.items() <= stamps(folder).items()  # no attempt was made, and the first verdicts are there still
    said = goldilocks("diff", f"{folder}@1", f"{folder}@2")
    assert said.status == 0, said.err
    assert re.search(r"^verifier answers@\S+ own.py:TEXTS\S* → answers@\S+$", said.out, re.M)
    line = r'stage2, attempt 0: ".+" against ".+" was wrong \(.+\), is correct \(.+\)'
    assert len(re.findall(line, said.out)) == len(DIFFERENT)
    assert not any(problem_id(text) in said.out for text in SAME)
