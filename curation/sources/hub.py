"""Data sets of the hub, cached by commit, and folders that `datasets` loads.

Invariants: a fetched set is one commit, complete or missing; a cached commit needs no network.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
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
    """Return the `datasets.Dataset` of a folder, or else of the hub.

    Raises:
        MissingSourceError: it is unavailable.
        SourceError: it lacks the split, or its parts do not match.
    """
    import datasets

    datasets.disable_progress_bars()
    if (local := folder / source.path).exists():
        return _by_library(source, str(local), None)
    commit = _commit_of(source)
    note = Path(datasets.config.HF_DATASETS_CACHE) / "goldilocks" / f"{_name_of(source, commit)}.json"
    if (dataset := _cached(note)) is None:
        dataset = _by_library(source, source.path, commit)
        files = [Path(entry["filename"]) for entry in dataset.cache_files]
        atomic_write(note, json.dumps([[str(file), file.stat().st_size] for file in files]) + "\n")
    return dataset


def _by_library(source: Source, name: str, revision: str | None) -> Any:
    import datasets

    loaded_splits = []
    for loaded in _loaded(source, name, revision):
        if not isinstance(loaded, datasets.DatasetDict):
            loaded_splits.append(loaded)
            continue
        for split in names(source.split):
            if split not in loaded:
                raise SourceError(f"{_subject(source)} has no split `{split}`; it has: {', '.join(loaded)}.")
            loaded_splits.append(loaded[split])
    try:
        return loaded_splits[0] if len(loaded_splits) == 1 else datasets.concatenate_datasets(loaded_splits)
    except ValueError as error:
        raise SourceError(
            f"{_subject(source)}: its configurations and splits differ in their columns ({first_line(error)}); make "
            "them sources of their own."
        ) from error


def _loaded(source: Source, name: str, revision: str | None) -> list[Any]:
    import datasets

    root = f"hf://datasets/{name}@{revision}" if revision is not None else name
    files = [f"{root}/{file}" for file in names(source.files)]
    builders = {BUILDERS.get(Path(file).suffix) for file in files}
    if len(builders) > 1 or None in builders:
        raise SourceError(f"{_subject(source)}: `files` are of one kind, {', '.join(BUILDERS)}: {', '.join(files)}.")
    is_saved = any((Path(name) / file).exists() for file in ("dataset_info.json", "dataset_dict.json"))
    with _as_sentence(source):
        if is_saved and revision is None:
            return [datasets.load_from_disk(name)]
        if files:
            return [datasets.load_dataset(builder, data_files=files, split="train") for builder in builders]
        subsets = names(source.subset) or (None,)
        return [datasets.load_dataset(name, subset, revision=revision) for subset in subsets]


def _commit_of(source: Source) -> str:
    if source.revision is not None and COMMIT.fullmatch(source.revision):
        return source.revision
    from huggingface_hub import HfApi

    with _as_sentence(source):
        return str(HfApi().dataset_info(source.path, revision=source.revision).sha)


def _name_of(source: Source, commit: str) -> str:
    selection = [source.path, *map(list, (names(source.subset), names(source.split), names(source.files))), commit]
    return hashlib.blake2b(json.dumps(selection).encode(), digest_size=16).hexdigest()


def _cached(note: Path) -> Any:
    import datasets

    try:
        files = json.loads(note.read_text(encoding="utf-8"))
        if not files or any(Path(file).stat().st_size != size for file, size in files):
            return None
    except (OSError, ValueError, TypeError):
        return None
    return datasets.concatenate_datasets([datasets.Dataset.from_file(file) for file, _ in files])


@contextmanager
def _as_sentence(source: Source) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # also connection errors of whichever HTTP library the client's version uses
        raise MissingSourceError(f"{_subject(source)} {_reason_and_remedy(source, error)}") from error


def _reason_and_remedy(source: Source, error: BaseException) -> str:
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
            f"is gated: its owners grant access on request. Log in at {page}, request access, then run `hf auth login` "
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
        return f"cannot be loaded: the hub has no such data set, or it is private; see {page}."
    if isinstance(error, DatasetGenerationError) and error.__cause__ is not None:
        error = error.__cause__  # the error itself only states that there was one
    text = first_line(error)
    return f"cannot be loaded: {type(error).__name__}: {text}{'' if text.endswith('.') else '.'}"


def _subject(source: Source) -> str:
    return f"source {source.name}: data set {source.path}"
