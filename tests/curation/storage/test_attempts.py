"""The attempt store: append-only, each attempt once, read back whole and in order however it was written."""

import itertools
import re
import resource
import signal
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.records import ATTEMPT, AttemptKey, Completion, StoreError
from curation.storage.attempts import AttemptStore
from tests.curation.tables import frame

KEY = AttemptKey("weak@1", "think-1", "5f0c2ab19e7d")


def attempts(*names: tuple[str, int], key: AttemptKey = KEY) -> pl.DataFrame:
    """Attempts named by (problem, index); the text names it."""
    rows = (
        {"problem": problem, "index": index, "text": f"{key.policy} on {problem}, attempt {index}", "tokens": index}
        for problem, index in names
    )
    return frame(ATTEMPT, *rows, policy=key.policy, prompt=key.prompt, sampling=key.sampling, finish="stop")


def names(rows: pl.DataFrame) -> list[tuple[str, int]]:
    return list(rows.select("problem", "index").iter_rows())


def parts(store: AttemptStore) -> list[str]:
    return sorted(path.name for path in store.folder.glob("part-*"))


@pytest.mark.parametrize("again", [[("a", 1)], [("z", 0), ("a", 0)], [("c", 0), ("c", 0)]])
def test_an_attempt_stands_once(tmp_path: Path, again: list[tuple[str, int]]) -> None:
    store = AttemptStore(tmp_path, KEY)
    store.append(attempts(("a", 0), ("a", 1)))
    with pytest.raises(StoreError, match=r"attempt \('[ac]', [01]\) of weak@1 would be twice"):
        store.append(attempts(*again))
    for one in (store, AttemptStore(tmp_path, KEY)):
        assert names(one.read(["a", "c", "z"])) == [("a", 0), ("a", 1)]


def test_a_part_is_named_by_its_content(tmp_path: Path) -> None:
    batches = [attempts(("a", 0)), attempts(("b", 0), ("b", 1))]
    ones, others = AttemptStore(tmp_path / "x", KEY), AttemptStore(tmp_path / "y", KEY)
    for batch in batches:
        ones.append(batch)
    for batch in reversed(batches):
        others.append(batch)
    assert len(parts(ones)) == 2
    assert parts(ones) == parts(others)
    assert all(re.fullmatch(r"part-[0-9a-f]{16}\.parquet", name) for name in parts(ones))
    assert all((ones.folder / name).read_bytes() == (others.folder / name).read_bytes() for name in parts(ones))


def test_the_leftover_of_a_kill_goes(tmp_path: Path) -> None:
    store = AttemptStore(tmp_path, KEY)
    store.append(attempts(("a", 0)))
    (store.folder / ".aside-part").write_bytes(b"PAR1 half")
    again = AttemptStore(tmp_path, KEY)
    assert [path.name for path in again.folder.glob(".aside*")] == []
    assert names(again.read(["a"])) == [("a", 0)]


def test_groups_of_the_journal_become_parts_of_their_own_and_the_rest_stays(tmp_path: Path) -> None:
    answers = [(problem, index) for index in (1, 0) for problem in "dcba"]
    groups: list[list[str]] = [["c", "nobody"], [], ["d", "a"]]
    each, together = (AttemptStore(tmp_path / place, KEY) for place in ("each", "together"))
    for store in (each, together):
        store.add([(*name, Completion(text=f"{name}", finish="stop", tokens=1)) for name in answers])
    for group in groups:
        each.compact([group])
    together.compact(groups)
    assert parts(each) == parts(together) != []
    for store in (each, together):
        assert store.height == 8
        assert names(store.read(["b"])) == [("b", 0), ("b", 1)]
        assert [name[0] for name in names(next(iter(store.tables())))] in (["c", "c"], ["d", "d", "a", "a"])
        store.close()


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    store = AttemptStore(tmp_path, KEY)
    store.append(attempts(("a", 0)))
    (part,) = parts(store)
    (store.folder / part).write_bytes((store.folder / part).read_bytes()[:-20])
    with pytest.raises(StoreError, match=part):
        AttemptStore(tmp_path, KEY)
    with pytest.raises(StoreError, match=part):
        store.read(["a"])


def test_two_keys_do_not_mix(tmp_path: Path) -> None:
    keys = [KEY, replace(KEY, policy="weak@2"), replace(KEY, prompt="think-2"), replace(KEY, sampling="000000000000")]
    stores = [AttemptStore(tmp_path, key) for key in keys]
    assert len({store.folder for store in stores}) == 4
    for number, store in enumerate(stores):
        store.append(attempts(("a", number), key=keys[number]))
    for number, key in enumerate(keys):
        assert AttemptStore(tmp_path, key).read(["a"]).equals(attempts(("a", number), key=key))


def batches(cuts: Iterable[int], held: list[tuple[str, int]]) -> list[list[tuple[str, int]]]:
    edges = [0, *sorted({min(cut, len(held)) for cut in cuts}), len(held)]
    return [held[start:end] for start, end in itertools.pairwise(edges)]


@settings(max_examples=8)
@given(
    held=st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 5)), unique=True, min_size=1),
    cuts=st.lists(st.integers(0, 24), max_size=4),
)
def test_how_attempts_were_cut_into_appends_does_not_show(held: list[tuple[str, int]], cuts: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = AttemptStore(Path(folder), KEY)
        for batch in batches(cuts, held):
            store.append(attempts(*batch))
        expected = attempts(*sorted(held))
        assert store.read(list("abcd")).equals(expected)
        assert AttemptStore(Path(folder), KEY).read(list("dcba")).equals(expected)
        lacking = store.missing_indices(list("abcd"), 6)
        assert {(p, i) for p, indices in lacking.items() for i in indices} == {
            (p, i) for p in "abcd" for i in range(6)
        } - set(held)


def test_a_write_that_fills_the_disk_is_refused_and_leaves_the_journal_whole(tmp_path: Path) -> None:
    store = AttemptStore(tmp_path, KEY)
    store.add([("a", 0, Completion("short", "stop", 1))])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (store.journal_bytes + 20, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            store.add([("a", 1, Completion("x" * 100, "stop", 1))])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    store.add([("a", 2, Completion("later", "stop", 1))])
    for one in (store, AttemptStore(tmp_path, KEY)):
        assert names(one.read(["a"])) == [("a", 0), ("a", 2)]
    store.close()
