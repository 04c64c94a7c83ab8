"""Data sets of the hub, cached by commit, and folders that `datasets` loads.

Invariants: a fetched set is one commit, complete or missing; a cached commit needs no network.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from curation.config.base import names
from curation.records import SourceError
from curation.sources.places import MissingSourceError, Place, TableState
from curation.storage.remote import first_line
from curation.storage.stages import atomic_write

COMMIT = re.compile(r"[0-9a-f]{40}")

BUILDERS = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".csv": "csv", ".arrow": "arrow"}
"""The reader of files by their endings; so a set is read without its script, and only the named files are fetched."""


def dataset_state(place: Place, folder: Path) -> TableState:
    """Return a hub set's commit and selection, or the fingerprint of a local folder."""
    if (folder / place.path).exists():
        return TableState(str(load_dataset(place, folder)._fingerprint))
    commit = _commit_of(place)
    return TableState(_name_of(place, commit), commit)


def load_dataset(place: Place, folder: Path) -> Any:
    """Return the `datasets.Dataset` of a folder relative to ``folder``, or else of the hub.

    Raises:
        MissingSourceError: it cannot be had; the message has a remedy.
        SourceError: it has no such split, or its parts do not match.
    """
    import datasets

    local = folder / place.path
    datasets.disable_progress_bars()
    if (local / "dataset_info.json").exists() or (local / "dataset_dict.json").exists():
        return _pick_splits(place, [_loaded(place, lambda: datasets.load_from_disk(str(local)))])
    subsets = names(place.subset) or (None,)
    if local.exists():
        return _pick_splits(place, [_by_library(place, str(local), subset, None) for subset in subsets])
    commit = _commit_of(place)
    note = Path(datasets.config.HF_DATASETS_CACHE) / "goldilocks" / f"{_name_of(place, commit)}.json"
    if (found := _cached(note)) is not None:
        return found
    dataset = _pick_splits(place, [_by_library(place, place.path, subset, commit) for subset in subsets])
    files = [Path(entry["filename"]) for entry in dataset.cache_files]
    note.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(note, json.dumps([[str(file), file.stat().st_size] for file in files]) + "\n")
    return dataset


def _by_library(place: Place, name: str, subset: str | None, revision: str | None) -> Any:
    """Return the data set of a configuration or of the named files."""
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
    """Return the wanted splits of the configurations, in order."""
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
    try:
        return parts[0] if len(parts) == 1 else datasets.concatenate_datasets(parts)
    except ValueError as error:
        raise SourceError(
            f"{_named(place)}: its configurations and splits differ in their columns ({first_line(error)}); make them "
            "sources of their own."
        ) from error


def _commit_of(place: Place) -> str:
    """Return a hub set's commit, without a request if the revision is one."""
    if place.revision is not None and COMMIT.fullmatch(place.revision):
        return place.revision
    from huggingface_hub import HfApi

    return str(_loaded(place, lambda: HfApi().dataset_info(place.path, revision=place.revision)).sha)


def _name_of(place: Place, commit: str) -> str:
    """Return a hash of the commit and the selection."""
    taken = [place.path, *map(list, (names(place.subset), names(place.split), names(place.files))), commit]
    return hashlib.blake2b(json.dumps(taken).encode(), digest_size=16).hexdigest()


def _cached(note: Path) -> Any:
    """Return the set whose files a note lists; None if one is missing or changed in size."""
    import datasets

    try:
        files = [(Path(name), int(size)) for name, size in json.loads(note.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):
        return None
    if not files or any(not file.is_file() or file.stat().st_size != size for file, size in files):
        return None
    parts = [datasets.Dataset.from_file(str(file)) for file, _ in files]
    return parts[0] if len(parts) == 1 else datasets.concatenate_datasets(parts)


def _loaded(place: Place, load: Any) -> Any:
    """Return what the library loads, and its errors as a sentence."""
    try:
        return load()
    except Exception as error:  # also connection errors of whichever HTTP library the client's version uses
        raise MissingSourceError(f"{_named(place)} {_what_to_do(place, error)}") from error


def _what_to_do(place: Place, error: BaseException) -> str:
    import huggingface_hub.errors as hub_errors
    from datasets.exceptions import DatasetGenerationError

    chain = list(_causes(error))
    page = f"https://huggingface.co/datasets/{place.path}"
    if any(isinstance(cause, hub_errors.GatedRepoError) or "gated dataset" in str(cause) for cause in chain):
        return (
            f"is gated: its owners give access to those who ask. Log in at {page}, ask there, then run `hf auth login` "
            "or set HF_TOKEN, and run again."
        )
    if any(isinstance(cause, hub_errors.RevisionNotFoundError) for cause in chain):
        return f"cannot be loaded: it has no revision `{place.revision}`; {page}/commits/main lists them."
    if any("scripts are no longer supported" in str(cause) for cause in chain):
        return (
            "cannot be loaded: it is a script, which `datasets` does not run any more; read the hub's conversion, "
            '`revision = "refs/convert/parquet"`, or its data files by `files`.'
        )
    if any(isinstance(cause, hub_errors.RepositoryNotFoundError) for cause in chain):
        return f"cannot be loaded: the hub has no such data set (any more), or it is private; see {page}."
    if isinstance(error, DatasetGenerationError) and error.__cause__ is not None:
        error = error.__cause__  # the error itself only states that there was one
    text = first_line(error)
    return f"cannot be loaded: {type(error).__name__}: {text}{'' if text.endswith('.') else '.'}"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _named(place: Place) -> str:
    return f"source {place.source}: data set {place.path}"
