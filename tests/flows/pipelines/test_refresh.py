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
from flows.pipelines.refresh import RefreshResult, read_trained
from flows.publish.versions import newest_run, scan_decisions, stored_versions
from flows.stages.export import EXPORT
from tests.flows.conftest import TINY, Tiny, goldilocks, newer_policy, stamps, write_jsonl
from tests.flows.run.folders import card, contents, run

pytestmark = pytest.mark.slow

NAMES = {name: problem_id(TINY[name][0]) for name in ("half", "strong only", "easy", "wrong label", "few", "markup")}


def training_saw(folder: Path, **rates: int) -> Path:
    """The trainer's attempts: 16 a problem, with the number of correct ones by problem."""
    rows = [
        {"problem": NAMES[name.replace("_", " ")], "step": 7, "outcome": "correct" if at < right else "wrong"}
        for name, right in rates.items()
        for at in range(16)
    ]
    return write_jsonl(folder / "seen.jsonl", [*rows, {"problem": NAMES["half"], "step": 7, "outcome": "timeout"}])


@pytest.fixture(scope="module", autouse=True)
def _without_probes() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refreshing, "PROBE_SHARE", 0.0)
        patch.setattr(refreshing, "RETRY_SHARE", 0.0)
        yield


@pytest.fixture(scope="module")
def refreshed_once(tiny_run: Tiny, tmp_path_factory: pytest.TempPathFactory) -> tuple[Tiny, RefreshResult]:
    """A copy of the tiny run, refreshed: training saw one problem become easy, two stay as they are."""
    home = tmp_path_factory.mktemp("refreshed")
    tiny = tiny_run.copy(home)
    run(tiny.recipe, tiny.folder, "refresh.error_rate=0.125")  # 4 attempts are never sure
    return tiny, refresh_run(tiny.folder, newer_policy(home), training_saw(home, half=16, strong_only=8, markup=8))


@pytest.fixture
def refreshed(refreshed_once: tuple[Tiny, RefreshResult], tmp_path: Path) -> Tiny:
    """A copy of the refreshed run, to be changed at will, with the policy's and the trainer's attempts next to it."""
    newer_policy(tmp_path)
    training_saw(tmp_path, half=16, strong_only=8, markup=8)
    return refreshed_once[0].copy(tmp_path)


def test_the_first_version_is_the_run_itself_and_a_run_again_makes_none_and_keeps_the_day(tiny_copy: Tiny) -> None:
    (version,) = before = stored_versions(tiny_copy.folder)
    added = tiny_copy.table("data").height
    assert (version.number, version.origin, version.policy, version.counts["added"]) == (1, "run", "strong@1", added)
    assert f"## Version 1 ({version.made_on})" in (tiny_copy.folder / "curated" / "CHANGELOG.md").read_text()
    assert f"| Version | 1; newly suspected 1, added {added}; " in card(tiny_copy.folder)
    path = tiny_copy.folder / "versions" / "measured_on.json"
    write_json(path, dict.fromkeys(read_json(path) or {}, "2020-02-03"))
    assert "version 1 of" in run(tiny_copy.recipe, tiny_copy.folder).out
    assert stored_versions(tiny_copy.folder) == before
    assert set(tiny_copy.table("data")["measured_on"]) == {"2020-02-03"}


def test_only_what_became_uncertain_is_judged_again_and_the_next_version_states_the_changes_and_the_cost(
    refreshed_once: tuple[Tiny, RefreshResult],
) -> None:
    tiny, done = refreshed_once
    assert done.is_new
    rates = {row["problem"]: row for row in scan_decisions(tiny.folder, 2).collect().iter_rows(named=True)}
    half, strong = rates[NAMES["half"]], rates[NAMES["strong only"]]
    assert (half["policy"], half["reason"]) == ("strong@2", "too_easy")
    assert (strong["policy"], strong["keep"]) == ("strong@1", True)
    assert done.cost["problems"] == sum(done.chosen.values())
    assert done.cost["problems"] + done.cost["kept_rates"] == len(rates)
    assert sum(row["policy"] == "strong@2" for row in rates.values()) == done.cost["problems"]
    assert [version.origin for version in stored_versions(tiny.folder)] == ["run", "refresh"]
    assert done.version.counts["retired"] == 1
    text = (tiny.folder / "curated" / "CHANGELOG.md").read_text()
    assert text.index("## Version 2") < text.index("## Version 1")
    assert f"`{NAMES['half']}`: 0.50 of" in text
    assert f"{done.cost['attempts']:,} attempts" in text
    assert NAMES["half"] not in tiny.table("data")["id"].to_list()
    assert set(tiny.table("data")["policy"]) <= {"strong@1", "strong@2"}


def test_the_same_refresh_again_changes_nothing(refreshed: Tiny, tmp_path: Path) -> None:
    before = stamps(refreshed.folder)
    options = ("--policy", tmp_path / "newer.toml", "--attempts", tmp_path / "seen.jsonl")
    again = goldilocks("refresh", refreshed.folder, *options)
    assert (again.status, again.err) == (0, "")
    assert again.out.startswith("already judged with this policy; nothing was done: version 2 of")
    assert {**stamps(refreshed.folder), ".lock": before[".lock"]} == before
    assert len(stored_versions(refreshed.folder)) == 2


def test_new_evidence_or_another_policy_is_no_repetition(refreshed: Tiny, tmp_path: Path) -> None:
    seen = training_saw(tmp_path, half=16, strong_only=16, markup=8)
    moved = refresh_run(refreshed.folder, tmp_path / "newer.toml", seen)
    assert (moved.is_repeated, moved.chosen) == (False, {"moved": 1})
    assert not refresh_run(refreshed.folder, newer_policy(tmp_path, "strong@3"), seen).is_repeated


def test_the_recipe_run_again_leaves_the_refreshed_set(refreshed: Tiny) -> None:
    before = contents(refreshed.folder / "curated", "*.parquet")
    assert "version 2 of" in run(refreshed.recipe, refreshed.folder).out
    status = goldilocks("status", refreshed.folder).out
    assert "version 2 of" in status
    assert "retired 1" in status
    assert EXPORT.folder_in(newest_run(refreshed.folder)).parent.name == "0002"
    assert contents(refreshed.folder / "curated", "*.parquet") == before
    assert len(stored_versions(refreshed.folder)) == 2


def test_explain_shows_a_problem_version_by_version(refreshed_once: tuple[Tiny, RefreshResult]) -> None:
    tiny, _ = refreshed_once
    first, second = stored_versions(tiny.folder)
    lines = goldilocks("explain", tiny.folder, NAMES["half"]).out.splitlines()
    at = lines.index(f"version 1 ({first.made_on}): in the set")
    rate = f"  pass rate 0.500 over 4 attempts of strong@1, {first.made_on}, 95 % interval 0.15"
    assert lines[at + 1].startswith(rate)
    assert lines[at + 2] == f"version 2 ({second.made_on}, refreshed with strong@2): dropped, too_easy"
    assert lines[at + 3].endswith("; judged again (moved)")
    assert [line.split()[2] for line in lines[at + 4 :]] == ["correct"] * 4
    lines = goldilocks("explain", tiny.folder, NAMES["strong only"]).out.splitlines()
    assert lines[-2].startswith("  pass rate 0.500 over 4 attempts of strong@1")
    assert lines[-2].endswith("; not judged again")
    assert lines[-1] == "Curated set: in the curated set"


@pytest.mark.parametrize(
    ("policy", "attempts", "message"),
    [
        ("no.toml", None, "no such file"),
        ("inputs", None, "holds no model"),
        ("without.toml", None, r"no table \[models.NAME\]"),
        ("newer.toml", "no.jsonl", "no such file"),
        ("newer.toml", "odd.jsonl", "columns problem"),
    ],
)
def test_refusals(policy: str, attempts: str | None, message: str, tiny_copy: Tiny, tmp_path: Path) -> None:
    newer_policy(tmp_path)
    (tmp_path / "without.toml").write_text("kind = 'recorded'\n")
    write_jsonl(tmp_path / "odd.jsonl", [{"a": 1}])
    with pytest.raises(GoldilocksError, match=message):
        refresh_run(tiny_copy.folder, tmp_path / policy, tmp_path / attempts if attempts else None)


def test_a_folder_in_use_is_not_refreshed_and_the_trainers_attempts_are_counted(
    tiny_copy: Tiny, tmp_path: Path
) -> None:
    assert read_trained(training_saw(tmp_path, half=12)).rows() == [(NAMES["half"], 7, 12, 16)]
    with lock_folder(tiny_copy.folder), pytest.raises(GoldilocksError, match="in use"):
        refresh_run(tiny_copy.folder, newer_policy(tmp_path))
