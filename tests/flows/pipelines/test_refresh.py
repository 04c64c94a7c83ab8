"""A refresh of the tiny run: what is judged again, what stays, the next version, and that nothing is done twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from curation.difficulty import refresh as refreshing
from curation.records import GoldilocksError, problem_id
from curation.storage.locks import lock_folder
from curation.storage.stages import read_json, write_json
from flows.cli.commands import refresh_run
from flows.pipelines.refresh import RefreshResult, read_trained, with_policy
from flows.publish.versions import newest_run, scan_decisions, stored_versions
from flows.run.run_folder import open_run
from flows.stages.export import EXPORT
from tests.flows.conftest import TINY, Tiny, goldilocks, newer_policy, stamps, write_jsonl

pytestmark = pytest.mark.slow

NAMES = {name: problem_id(TINY[name][0]) for name in ("half", "strong only", "easy", "wrong label", "few", "markup")}


def training_saw(path: Path, **rates: int) -> Path:
    """The trainer's attempts: 16 a problem, ``correct`` of them correct."""
    rows = [
        {"problem": NAMES[name.replace("_", " ")], "step": 7, "outcome": "correct" if at < right else "wrong"}
        for name, right in rates.items()
        for at in range(16)
    ]
    return write_jsonl(path, [*rows, {"problem": NAMES["half"], "step": 7, "outcome": "timeout"}])


@pytest.fixture(scope="module", autouse=True)
def _without_probes() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refreshing, "PROBE_SHARE", 0.0)
        patch.setattr(refreshing, "RETRY_SHARE", 0.0)
        yield


@pytest.fixture(scope="module")
def refreshed_once(tiny_run: Tiny, tmp_path_factory: pytest.TempPathFactory) -> tuple[Tiny, RefreshResult]:
    """A copy of the tiny run, refreshed: training saw one problem become easy, two stay where they are."""
    home = tmp_path_factory.mktemp("refreshed")
    tiny = tiny_run.copy(home)
    tiny.run("refresh.error_rate=0.125")  # 4 attempts are never sure
    return tiny, refresh_run(tiny.folder, newer_policy(home), seen_in_training(home))


def seen_in_training(folder: Path) -> Path:
    return training_saw(folder / "seen.jsonl", half=16, strong_only=8, markup=8)


@pytest.fixture
def refreshed(refreshed_once: tuple[Tiny, RefreshResult], tmp_path: Path) -> tuple[Tiny, RefreshResult]:
    """A copy of the refreshed run, to be changed at will, with the policy's and the trainer's attempts next to it."""
    tiny, done = refreshed_once
    newer_policy(tmp_path)
    seen_in_training(tmp_path)
    return tiny.copy(tmp_path), done


def test_the_first_version_is_the_run_itself(tiny_run: Tiny) -> None:
    (version,) = stored_versions(tiny_run.folder)
    assert (version.number, version.origin, version.policy) == (1, "run", "strong@1")
    assert version.counts["added"] == tiny_run.table("data").height
    changes = (tiny_run.folder / "curated" / "CHANGELOG.md").read_text()
    assert f"## Version 1 ({version.made_on})" in changes
    assert "version 1 of" in tiny_run.out
    card = (tiny_run.folder / "curated" / "README.md").read_text()
    assert f"| Version | 1; newly suspected 1, added {version.counts['added']}; " in card


def test_a_run_again_makes_no_version_and_keeps_the_day(tiny_copy: Tiny) -> None:
    path = tiny_copy.folder / "versions" / "measured_on.json"
    write_json(path, dict.fromkeys(read_json(path) or {}, "2020-02-03"))
    before = stored_versions(tiny_copy.folder)
    assert tiny_copy.run().status == 0
    assert stored_versions(tiny_copy.folder) == before
    assert set(tiny_copy.table("data")["measured_on"]) == {"2020-02-03"}


def test_only_what_became_uncertain_is_judged_again(refreshed_once: tuple[Tiny, RefreshResult]) -> None:
    tiny, done = refreshed_once
    assert done.is_new
    rates = {row["problem"]: row for row in scan_decisions(tiny.folder, 2).collect().iter_rows(named=True)}
    assert rates[NAMES["half"]]["policy"] == "strong@2"
    assert rates[NAMES["half"]]["reason"] == "too_easy"
    assert rates[NAMES["strong only"]]["policy"] == "strong@1"
    assert rates[NAMES["strong only"]]["keep"]
    assert done.cost["problems"] == sum(done.chosen.values())
    assert done.cost["problems"] + done.cost["kept_rates"] == len(rates)
    assert sum(row["policy"] == "strong@2" for row in rates.values()) == done.cost["problems"]


def test_the_next_version_says_what_changed_and_what_it_took(refreshed_once: tuple[Tiny, RefreshResult]) -> None:
    tiny, done = refreshed_once
    assert [version.origin for version in stored_versions(tiny.folder)] == ["run", "refresh"]
    assert done.version.counts["retired"] == 1
    text = (tiny.folder / "curated" / "CHANGELOG.md").read_text()
    assert text.index("## Version 2") < text.index("## Version 1")
    assert f"`{NAMES['half']}`: 0.50 of" in text
    assert f"{done.cost['attempts']:,} attempts" in text
    assert NAMES["half"] not in tiny.table("data")["id"].to_list()
    assert set(tiny.table("data")["policy"]) <= {"strong@1", "strong@2"}


def test_the_same_refresh_again_changes_nothing(refreshed: tuple[Tiny, RefreshResult], tmp_path: Path) -> None:
    tiny, _ = refreshed
    before = stamps(tiny.folder)
    said = goldilocks(
        "refresh", tiny.folder, "--policy", tmp_path / "newer.toml", "--attempts", tmp_path / "seen.jsonl"
    )
    assert (said.status, said.err) == (0, "")
    assert said.out.startswith("already judged with this policy; nothing was done: version 2 of")
    assert {**stamps(tiny.folder), ".lock": before[".lock"]} == before
    assert len(stored_versions(tiny.folder)) == 2


def test_new_evidence_or_another_policy_is_no_repetition(refreshed: tuple[Tiny, RefreshResult], tmp_path: Path) -> None:
    tiny, _ = refreshed
    newer = training_saw(tmp_path / "later.jsonl", half=16, strong_only=16, markup=8)
    moved = refresh_run(tiny.folder, tmp_path / "newer.toml", newer)
    assert (moved.is_repeated, moved.chosen) == (False, {"moved": 1})
    other = refresh_run(tiny.folder, newer_policy(tmp_path, "strong@3"), newer)
    assert not other.is_repeated
    with pytest.raises(GoldilocksError, match="no such file"):
        refresh_run(tiny.folder, tmp_path / "newer.toml", tmp_path / "no.jsonl")


def test_the_line_run_again_leaves_the_refreshed_set(refreshed: tuple[Tiny, RefreshResult]) -> None:
    tiny, _ = refreshed
    before = {path: path.read_bytes() for path in (tiny.folder / "curated").rglob("*.parquet")}
    assert "version 2 of" in tiny.run().out
    said = goldilocks("status", tiny.folder).out
    assert "version 2 of" in said
    assert "retired 1" in said
    assert EXPORT.folder_in(newest_run(tiny.folder)).parent.name == "0002"
    assert {path: path.read_bytes() for path in (tiny.folder / "curated").rglob("*.parquet")} == before
    assert len(stored_versions(tiny.folder)) == 2


def test_explain_shows_a_problem_version_by_version(refreshed_once: tuple[Tiny, RefreshResult]) -> None:
    tiny, _ = refreshed_once
    first, second = stored_versions(tiny.folder)
    lines = goldilocks("explain", tiny.folder, NAMES["half"]).out.splitlines()
    at = lines.index(f"version 1 ({first.made_on}): in the set")
    assert lines[at + 1].startswith(
        f"  pass rate 0.500 over 4 attempts of strong@1, {first.made_on}, 95 % interval 0.15"
    )
    assert lines[at + 2] == f"version 2 ({second.made_on}, refreshed with strong@2): dropped, too_easy"
    assert lines[at + 3].endswith("; judged again (moved)")
    assert [line.split()[2] for line in lines[at + 4 :]] == ["correct"] * 4
    lines = goldilocks("explain", tiny.folder, NAMES["strong only"]).out.splitlines()
    assert lines[-2].startswith("  pass rate 0.500 over 4 attempts of strong@1")
    assert lines[-2].endswith("; not judged again")
    assert lines[-1] == "Curated set: in the curated set"


def test_refusals(tiny_copy: Tiny, tmp_path: Path) -> None:
    assert read_trained(training_saw(tmp_path / "seen.jsonl", half=12)).rows() == [(NAMES["half"], 7, 12, 16)]
    policy = newer_policy(tmp_path)
    run = open_run(tiny_copy.folder)
    for path, words in ((tmp_path / "no.toml", "no such file"), (tmp_path, "holds no model")):
        with pytest.raises(GoldilocksError, match=words):
            with_policy(run, path)
    policy.write_text("kind = 'recorded'\n")
    with pytest.raises(GoldilocksError, match=r"no table \[models.NAME\]"):
        with_policy(run, policy)
    with pytest.raises(GoldilocksError, match="no such file"):
        read_trained(tmp_path / "no.jsonl")
    with pytest.raises(GoldilocksError, match="columns problem"):
        read_trained(write_jsonl(tmp_path / "odd.jsonl", [{"a": 1}]))
    with lock_folder(tiny_copy.folder), pytest.raises(GoldilocksError, match="in use"):
        refresh_run(tiny_copy.folder, newer_policy(tmp_path))
