"""Data sets of the hub, cached by commit, and folders that `datasets` loads.

Invariants: a fetched set is one commit, complete or missing; a cached commit needs no network.
"""

from __future__ import annotations

import hashlib
import json
import re
from functools import partial
from pathlib import Path
from typing import Any

from curation.config.base import names
from curation.config.sources import Source
from curation.records import SourceError
from curation.sources.rows import MissingSourceError, TableState
from curation.storage.remote import first_line
from curation.storage.stages import atomic_write

COMMIT = re.compile(r"[0-9a-f]{40}")

BUILDERS = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".csv": "csv", ".arrow": "arrow"}
"""Readers by file ending; no set's script runs, and only named files are fetched."""


def dataset_state(source: Source, folder: Path) -> TableState:
    """Return a hub set's commit and selection, or a folder's fingerprint."""
    if (folder / source.path).exists():
        return TableState(str(load_dataset(source, folder)._fingerprint))
    commit = _commit_of(source)
    return TableState(_name_of(source, commit), commit)


def load_dataset(source: Source, folder: Path) -> Any:
    """Return the `datasets.Dataset` of a folder relative to ``folder``, or else of the hub.

    Raises:
        MissingSourceError: it is unavailable.
        SourceError: it lacks the split, or its parts do not match.
    """
    import datasets

    local = folder / source.path
    datasets.disable_progress_bars()
    if (local / "dataset_info.json").exists() or (local / "dataset_dict.json").exists():
        return _pick_splits(source, [_loaded(source, partial(datasets.load_from_disk, str(local)))])
    if local.exists():
        return _by_library(source, str(local), None)
    commit = _commit_of(source)
    note = Path(datasets.config.HF_DATASETS_CACHE) / "goldilocks" / f"{_name_of(source, commit)}.json"
    if (found := _cached(note)) is None:
        found = _by_library(source, source.path, commit)
        files = [Path(entry["filename"]) for entry in found.cache_files]
        atomic_write(note, json.dumps([[str(file), file.stat().st_size] for file in files]) + "\n")
    return found


def _by_library(source: Source, name: str, revision: str | None) -> Any:
    from datasets import load_dataset as load

    if source.files is None:
        subsets = names(source.subset) or (None,)
        return _pick_splits(
            source, [_loaded(source, partial(load, name, subset, revision=revision)) for subset in subsets]
        )
    root = f"hf://datasets/{name}@{revision}" if revision is not None else name
    files = [f"{root}/{file}" for file in names(source.files)]
    kinds = {BUILDERS.get(Path(file).suffix) for file in files}
    builder = next(iter(kinds))
    if len(kinds) > 1 or builder is None:
        raise SourceError(f"{_named(source)}: `files` are of one kind, {', '.join(BUILDERS)}: {', '.join(files)}.")
    return _loaded(source, partial(load, builder, data_files=files, split="train"))


def _pick_splits(source: Source, loaded: list[Any]) -> Any:
    import datasets

    parts = []
    for dataset in loaded:
        if not isinstance(dataset, datasets.DatasetDict):
            parts.append(dataset)
            continue
        for split in names(source.split):
            if split not in dataset:
                raise SourceError(f"{_named(source)} has no split `{split}`; it has: {', '.join(dataset)}.")
            parts.append(dataset[split])
    try:
        return parts[0] if len(parts) == 1 else datasets.concatenate_datasets(parts)
    except ValueError as error:
        raise SourceError(
            f"{_named(source)}: its configurations and splits differ in their columns ({first_line(error)}); make them "
            "sources of their own."
        ) from error


def _commit_of(source: Source) -> str:
    """Return a hub set's commit; needs no request if pinned."""
    if source.revision is not None and COMMIT.fullmatch(source.revision):
        return source.revision
    from huggingface_hub import HfApi

    return str(_loaded(source, lambda: HfApi().dataset_info(source.path, revision=source.revision)).sha)


def _name_of(source: Source, commit: str) -> str:
    taken = [source.path, *map(list, (names(source.subset), names(source.split), names(source.files))), commit]
    return hashlib.blake2b(json.dumps(taken).encode(), digest_size=16).hexdigest()


def _cached(note: Path) -> Any:
    """Return the set of a note's files, None if one is missing or changed."""
    import datasets

    try:
        files = json.loads(note.read_text(encoding="utf-8"))
        if not files or any(Path(file).stat().st_size != size for file, size in files):
            return None
    except (OSError, ValueError, TypeError):
        return None
    return datasets.concatenate_datasets([datasets.Dataset.from_file(file) for file, _ in files])


def _loaded(source: Source, load: Any) -> Any:
    """Return ``load``'s result, or raise its error as a sentence."""
    try:
        return load()
    except Exception as error:  # also connection errors of whichever HTTP library the client's version uses
        raise MissingSourceError(f"{_named(source)} {_what_to_do(source, error)}") from error


def _what_to_do(source: Source, error: BaseException) -> str:
    import huggingface_hub.errors as hub_errors
    from datasets.exceptions import DatasetGenerationError

    chain = list[BaseException]()
    cause: BaseException | None = error
    while cause is not None:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    page = f"https://huggingface.co/datasets/{source.path}"
    if any(isinstance(cause, hub_errors.GatedRepoError) or "gated dataset" in str(cause) for cause in chain):
        return (
            f"is gated: its owners give access to those who ask. Log in at {page}, ask there, then run `hf auth login` "
            "or set HF_TOKEN, and run again."
        )
    if any(isinstance(cause, hub_errors.RevisionNotFoundError) for cause in chain):
        return f"cannot be loaded: it has no revision `{source.revision}`; {page}/commits/main lists them."
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


def _named(source: Source) -> str:
    return f"source {source.name}: data set {source.path}"
