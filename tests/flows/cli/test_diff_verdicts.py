"""Two verifiers on the attempts of one run: `run` with another one, and what `diff` shows of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from curation.records import problem_id
from tests.flows.conftest import Tiny, goldilocks, stamps, tries, write_jsonl

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
    "What angle does the minute hand of a clock turn in 20 minutes?": (
        "120^\\circ",
        "\\frac{2\\pi}{3} \\frac{2\\pi}{3} 1 2",
    ),
    "Find all antiderivatives of $2x$.": ("x^2+C", "x^2+K x^2+K x^3 x^4"),
}
SAME = {"What is 17 + 25?": ("42", "42 42 1 2"), "What is 5 plus 6?": ("11", "11 11 11 11")}


@pytest.fixture
def judged_twice(tiny_recipe: Path, tmp_path: Path) -> Tiny:
    """A run whose answers are judged by a user's judge, which compares texts."""
    home = tmp_path / "in"
    home.mkdir()
    rows = {**DIFFERENT, **SAME}
    for file in tiny_recipe.parent.iterdir():
        (home / file.name).write_bytes(file.read_bytes())
    write_jsonl(home / "problems.jsonl", [{"question": text, "final": answer} for text, (answer, _) in rows.items()])
    made = [tries(text, answer, finals) for text, (answer, finals) in rows.items()]
    for model in ("weak", "strong"):
        write_jsonl(home / f"{model}.jsonl", made)
    (home / "own.py").write_text(OWN)
    run = Tiny(home / "tiny.toml", tmp_path / "run")
    assert run.run(TEXTS).status == 0
    return run


def test_a_new_verifier_writes_beside_the_old_one_and_diff_names_the_verdicts(judged_twice: Tiny) -> None:
    folder = judged_twice.folder
    before = {name: stamp for name, stamp in stamps(folder).items() if name.startswith(("attempts/", "verdicts/"))}
    assert any("/part-" in name for name in before)
    assert judged_twice.run("verify.judges=[]").status == 0
    assert before.items() <= stamps(folder).items()  # no attempt was made, and the first verdicts are there still
    said = goldilocks("diff", f"{folder}@1", f"{folder}@2")
    assert said.status == 0, said.err
    assert re.search(r"^verifier answers@\S+ own.py:TEXTS\S* → answers@\S+$", said.out, re.M)
    line = r'stage2, attempt 0: ".+" against ".+" was wrong \(.+\), is correct \(.+\)'
    assert len(re.findall(line, said.out)) == len(DIFFERENT)
    names = {problem_id(text) for text in SAME}
    assert not any(name in said.out for name in names)


def test_the_way_back_is_the_first_set_again(judged_twice: Tiny) -> None:
    first = judged_twice.table("data")
    for judges in ("verify.judges=[]", TEXTS):
        assert judged_twice.run(judges).status == 0
    assert judged_twice.table("data").equals(first)
