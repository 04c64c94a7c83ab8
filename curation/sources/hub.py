"""Data sets of the hub, and folders that `datasets` reads: found, fetched once, and named by commit and digest.

Invariants:
  - what is fetched is one commit: a branch, a tag or no revision is looked up first, and the commit is told;
  - what was fetched of a commit is read again from this machine without asking the hub, whole or not at all;
  - a set that is gone, gated, private or a script is one sentence that says what to do.

Not here: what the rows mean (`curation.sources.problems`), and which of them are taken (`curation.sources.selection`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from gzip import BadGzipFile
from pathlib import Path
from typing import Any

from curation.config.base import names
from curation.records import SourceError
from curation.sources.places import MissingSourceError, Place
from curation.sources.streams import DAMAGE
from curation.storage.stages import atomic_write, file_digest

COMMIT = re.compile(r"[0-9a-f]{40}")

BUILDERS = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".csv": "csv", ".arrow": "arrow"}
"""Who reads files by their names; so a set is read past its script, and only the files that are named are fetched."""

_DAMAGE_ALONE = (*(kind for kind in DAMAGE if kind is not OSError), BadGzipFile)
"""What nothing but a damaged file raises."""


@dataclass(frozen=True, slots=True)
class LoadedSet:
    """A data set's rows, the commit that they are from, and a hash of what they are.

    Example: ``LoadedSet(dataset, "31dd309567e3da778038cc87d868b6097a3ccf68", "9f1c…")``
    """

    dataset: Any
    """`datasets.Dataset`."""
    commit: str | None
    """None for a folder of this machine."""
    digest: str


def load_dataset(place: Place, folder: Path) -> LoadedSet:
    """Return a data set: a folder relative to ``folder`` or, where there is none, of the hub.

    Raises:
        MissingSourceError: it cannot be had; the message says why, and what to do.
        SourceError: it has no such split, or its parts do not fit together.
    """
    import datasets

    local = folder / place.path
    datasets.disable_progress_bars()
    if (local / "dataset_info.json").exists() or (local / "dataset_dict.json").exists():
        with_splits = _loaded(place, lambda: datasets.load_from_disk(str(local)))
        return _as_local(_pick_splits(place, [with_splits]))
    if local.exists():
        return _as_local(
            _pick_splits(place, [_by_library(place, str(local), subset, None) for subset in _subsets(place)])
        )
    commit = _commit_of(place)
    kept = _kept_file(place, commit)
    if (found := _read_kept(kept, commit)) is not None:
        return found
    dataset = _pick_splits(place, [_by_library(place, place.path, subset, commit) for subset in _subsets(place)])
    return _keep(kept, dataset, commit)


def _subsets(place: Place) -> tuple[str | None, ...]:
    return names(place.subset) or (None,)


def _by_library(place: Place, name: str, subset: str | None, revision: str | None) -> Any:
    """Return the data set of a configuration, or that of the files that the place names."""
    import datasets

    if place.files is None:
        return _loaded(place, lambda: datasets.load_dataset(name, subset, revision=revision))
    root = f"hf://datasets/{name}@{revision}" if revision is not None else name
    files = [f"{root}/{file}" for file in names(place.files)]
    kinds = {BUILDERS.get(Path(file).suffix) for file in files}
    builder = next(iter(kinds))
    if len(kinds) > 1 or builder is None:
        raise SourceError(f"{_named(place)}: `files` are of one kind, {', '.join(BUILDERS)}: {', '.join(files)}.")
    return _loaded(place, lambda: datasets.load_dataset(builder, data_files=files, split="train"))


def _pick_splits(place: Place, loaded: list[Any]) -> Any:
    """Return the wanted splits of the configurations, one after another."""
    import datasets

    parts = []
    for dataset in loaded:
        if not isinstance(dataset, datasets.DatasetDict):
            parts.append(dataset)
            continue
        for split in names(place.split):
            if split not in dataset:
                raise SourceError(f"{_named(place)} has no split `{split}`; it has: {', '.join(dataset)}.")
            parts.append(dataset[split])
    if len(parts) == 1:
        return parts[0]
    try:
        return datasets.concatenate_datasets(parts)
    except ValueError as error:
        raise SourceError(
            f"{_named(place)}: its configurations and splits differ in their columns ({_first_line(error)}); make them "
            "sources of their own."
        ) from error


def _as_local(dataset: Any) -> LoadedSet:
    return LoadedSet(dataset, None, str(dataset._fingerprint))


def _commit_of(place: Place) -> str:
    """Return the commit of a hub set; the hub is asked only where the revision is not one already."""
    if place.revision is not None and COMMIT.fullmatch(place.revision):
        return place.revision
    from huggingface_hub import HfApi

    return str(_loaded(place, lambda: HfApi().dataset_info(place.path, revision=place.revision)).sha)


def _kept_file(place: Place, commit: str) -> Path:
    """Return the note of what was fetched; it lies in the library's cache, and goes with it."""
    import datasets

    asked = [place.path, *map(list, (names(place.subset), names(place.split), names(place.files))), commit]
    name = hashlib.blake2b(json.dumps(asked).encode(), digest_size=16).hexdigest()
    return Path(datasets.config.HF_DATASETS_CACHE) / "goldilocks" / f"{name}.json"


def _keep(note: Path, dataset: Any, commit: str) -> LoadedSet:
    """Note the files that hold a fetched set, with their sizes and their hash."""
    files = [Path(entry["filename"]) for entry in dataset.cache_files]
    digest = hashlib.blake2b("-".join(map(file_digest, files)).encode(), digest_size=16).hexdigest()
    note.parent.mkdir(parents=True, exist_ok=True)
    table = {"commit": commit, "digest": digest, "files": [[str(file), file.stat().st_size] for file in files]}
    atomic_write(note, json.dumps(table, indent=1) + "\n")
    return LoadedSet(dataset, commit, digest)


def _read_kept(note: Path, commit: str) -> LoadedSet | None:
    """Return the set that a note names; None where a file of it is gone or has another size."""
    import datasets

    try:
        table = json.loads(note.read_text(encoding="utf-8"))
        files = [(Path(name), int(size)) for name, size in table["files"]]
        digest = str(table["digest"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not files or any(not file.is_file() or file.stat().st_size != size for file, size in files):
        return None
    parts = [datasets.Dataset.from_file(str(file)) for file, _ in files]
    return LoadedSet(parts[0] if len(parts) == 1 else datasets.concatenate_datasets(parts), commit, digest)


def _loaded(place: Place, load: Any) -> Any:
    """Return what the library loads, and its errors as a sentence."""
    try:
        return load()
    except Exception as error:  # also connection errors of whichever HTTP library the client's version uses
        raise MissingSourceError(f"{_named(place)} {_what_to_do(place, error)}") from error


def _what_to_do(place: Place, error: BaseException) -> str:
    import huggingface_hub.errors as hub_errors
    from datasets.exceptions import DatasetGenerationError
    from pyarrow import ArrowInvalid

    chain = list(_causes(error))
    if isinstance(error, DatasetGenerationError) and error.__cause__ is not None:
        error = error.__cause__  # it says no more than that there was one
    text = _first_line(error)
    page = f"https://huggingface.co/datasets/{place.path}"
    if any(isinstance(one, hub_errors.GatedRepoError) or "gated dataset" in str(one) for one in chain):
        return (
            f"is gated: its owners give access to those who ask. Log in at {page}, ask there, then run `hf auth login` "
            "or set HF_TOKEN, and run again."
        )
    if any(isinstance(one, hub_errors.RevisionNotFoundError) for one in chain):
        return f"cannot be loaded: it has no revision `{place.revision}`; {page}/commits/main lists them."
    if any("scripts are no longer supported" in str(one) for one in chain):
        return (
            "cannot be loaded: it is a script, which `datasets` does not run any more; read the hub's conversion, "
            '`revision = "refs/convert/parquet"`, or its data files by `files`.'
        )
    if any(isinstance(one, hub_errors.RepositoryNotFoundError) for one in chain):
        return f"cannot be loaded: the hub has no such data set (any more), or it is private; see {page}."
    said = f"cannot be loaded: {type(error).__name__}: {text}{'' if text.endswith('.') else '.'}"
    if any(isinstance(one, (DatasetGenerationError, ArrowInvalid, *_DAMAGE_ALONE)) for one in chain):
        said += (
            " `datasets` refuses a damaged file as a whole: name its files by kind `jsonl`, `csv` or `parquet`, which "
            "are read as far as they are sound, with `bad_rows = 100`."
        )
    return said


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0]


def _named(place: Place) -> str:
    return f"source {place.source}: data set {place.path}"
