"""Prompts that every server refuses: set aside with their reason, asked again by later runs, under a failure budget."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from curation.difficulty.sampling import SamplingProgress
from curation.records import problem_id
from flows.run.sampling_session import progress_phrase
from tests.curation.policies.test_endpoint import StandIn
from tests.flows.conftest import Tiny, goldilocks, published, recipe_with, stamps, write_jsonl
from tests.patience import patient

RECIPE = recipe_with(
    'name="poisoned"',
    "shard_rows=2",
    "stage1.band.max_pass_rate=1.0",
    'models.student={kind="endpoint", model="m", revision="1", prompt="plain", urls=["URL"]}',
)
PROBLEMS = {f"What is {number} plus {number} times 3?": str(4 * number) for number in (11, 12, 13, 14, 15, 16)}
POISONED, OTHER = "What is 12 plus 12 times 3?", "What is 15 plus 15 times 3?"


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    patient(monkeypatch, retries=1)


def says(folder: Path, refused: dict[str, int]) -> None:
    """The server answers every problem rightly, less those that it refuses with a status."""
    answers = [[statement, f"So it is \\boxed{{{answer}}}."] for statement, answer in PROBLEMS.items()]
    (folder / "says.json").write_text(json.dumps([*([text, status] for text, status in refused.items()), *answers]))


@pytest.fixture
def poisoned(tmp_path: Path) -> Iterator[Tiny]:
    """A recipe whose server answers all problems; what it refuses, tests say."""
    home = tmp_path / "inputs"
    home.mkdir()
    write_jsonl(home / "problems.jsonl", [{"question": text, "final": answer} for text, answer in PROBLEMS.items()])
    says(tmp_path, {})
    server = StandIn(tmp_path / "journal.jsonl", says=tmp_path / "says.json")
    (home / "poisoned.toml").write_text(RECIPE.replace("URL", server.url))
    yield Tiny(home / "poisoned.toml", tmp_path / "run")
    server.stop()


def data_of(run: Tiny) -> dict[str, bytes]:
    """The published rows, byte for byte."""
    return {path.name: path.read_bytes() for path in (run.folder / "curated" / "data").glob("*.parquet")}


@pytest.mark.slow
def test_one_poisoned_prompt_is_set_aside_and_asked_again(poisoned: Tiny, tmp_path: Path) -> None:
    status = 400
    says(tmp_path, {POISONED: status})
    first = poisoned.run()
    assert first.status == 0, first.err
    assert "sampling_failed 1" in first.out
    assert "problems that the model's servers refused: 1; the next run tries them again (retry 1 of 2)" in first.out
    (row,) = published(poisoned.folder, "dropped").filter(reason="sampling_failed").iter_rows(named=True)
    assert row["statement"] == POISONED
    assert row["evidence"].startswith(f"attempt 0 was refused ({status}): ")
    assert f"{status} the prompt is poisoned" in row["evidence"]
    assert "sampling_failed" in goldilocks("status", poisoned.folder).out
    assert "the prompt is poisoned" in goldilocks("explain", poisoned.folder, problem_id(POISONED)).out
    assert "refused by the model's servers" in (poisoned.folder / "curated" / "README.md").read_text()
    assert published(poisoned.folder, "data").height == 5
    (noted,) = (poisoned.folder / "attempts").glob("*/refused.jsonl")
    assert json.loads(noted.read_text().splitlines()[0])[:3] == [problem_id(POISONED), 0, str(status)]

    assert json.loads((poisoned.folder / "curated" / "asked.json").read_text())["prompt"] == "plain"

    kept = stamps(poisoned.folder / "verdicts")
    says(tmp_path, {})
    second = poisoned.run()
    assert second.status == 0, second.err
    assert "sampling_failed" not in second.out
    assert published(poisoned.folder, "data").height == 6
    later = stamps(poisoned.folder / "verdicts")
    assert all(later[name] == stamp for name, stamp in kept.items() if "/verdicts/00001" in name)

    untouched = Tiny(poisoned.recipe, tmp_path / "untouched")
    assert untouched.run().status == 0
    ours, theirs = (published(run.folder, "data").sort("id") for run in (poisoned, untouched))
    assert ours.equals(theirs)


@pytest.mark.slow
def test_what_stays_refused_is_asked_by_so_many_runs_and_changes_nothing(poisoned: Tiny, tmp_path: Path) -> None:
    says(tmp_path, {POISONED: 400})
    assert poisoned.run().status == 0
    before, journal = data_of(poisoned), tmp_path / "journal.jsonl"
    asked = []
    for _ in range(3):
        start = len(journal.read_text().splitlines())
        last = poisoned.run()
        assert last.status == 0, last.err
        asked.append(len(journal.read_text().splitlines()) - start)
    assert [count > 0 for count in asked] == [True, True, False]
    assert "no further run tries them again; another revision or decoding of the model asks anew" in last.out
    assert data_of(poisoned) == before


@pytest.mark.slow
def test_too_many_refused_problems_end_the_run_with_counts_and_an_example(poisoned: Tiny, tmp_path: Path) -> None:
    says(tmp_path, {POISONED: 400, OTHER: 400})
    for _ in range(2):  # again at a restart
        ended = poisoned.run()
        assert ended.status == 1
        sentence = ended.err.splitlines()[-1]
        assert re.search(
            r"2 of 6 problems were refused \(400 (2|1, 1 before)\), more than stage1.sampling.max_failed = 0.01",
            sentence,
        )
        assert "400 the prompt is poisoned. Fix the cause or raise stage1.sampling.max_failed" in sentence
    allowed = poisoned.run("stage1.sampling.max_failed=0.5")
    assert allowed.status == 0, allowed.err
    assert "sampling_failed 2" in allowed.out
    refused = poisoned.run("stage1.sampling.max_failed=0")
    assert refused.status == 1
    assert "max_failed = 0 allows (0)" in refused.err


@pytest.mark.slow
def test_votes_of_a_model_are_refused_and_asked_again_too(poisoned: Tiny, tmp_path: Path) -> None:
    policy = RECIPE.partition("[models.student]")[2].replace("URL", poisoned.recipe.read_text().split('"')[-2])
    with poisoned.recipe.open("a") as recipe:
        recipe.write(f'\n[questions.premises]\nmodel = "voter"\n\n[models.voter]{policy}')
    says(tmp_path, {POISONED: 400})
    first = poisoned.run()
    assert first.status == 0, first.err
    assert "Premises by votes: problems that the model's servers refused: 1; the next run tries them" in first.out
    says(tmp_path, {})
    second = poisoned.run()
    assert second.status == 0, second.err
    assert "refused" not in second.out
    assert published(poisoned.folder, "data").height == 6
    says(tmp_path, {POISONED: 400, OTHER: 400})
    ended = Tiny(poisoned.recipe, tmp_path / "other").run()
    assert ended.status == 1
    assert "(400 2), more than stage1.sampling.max_failed = 0.01 allows (1)" in ended.err


def test_refusals_for_now_are_shown_while_a_run_samples() -> None:
    servers = {"busy": 2, "failed": 1, "asked_again": 3, "latency_s": 0.25}
    phrase = progress_phrase(SamplingProgress(in_flight=5, servers=servers))
    assert "5 in flight at 0.25 s, asked again 3 (429: 2, 5xx: 1)" in phrase
    assert "in flight" not in progress_phrase(SamplingProgress(in_flight=5))
