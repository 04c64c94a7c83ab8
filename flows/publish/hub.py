"""Push a published set to a data set hub.

Invariants: `plan_push` sends nothing; a push is one commit; tags never move.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from curation.publish.export_formats.writing import card_license
from curation.records import GoldilocksError, SourceError
from flows.publish.curated_set import published_folder, read_mark
from flows.run.mirroring import MARK

if TYPE_CHECKING:
    from huggingface_hub import HfApi


class HubError(GoldilocksError):
    """The hub could not be reached, or refused."""


@dataclass(frozen=True, slots=True)
class Push:
    """A planned push; file sizes are in bytes."""

    folder: Path
    name: str
    tag: str
    files: tuple[tuple[str, int], ...]
    license: str

    @property
    def bytes(self) -> int:
        """Return the size of all files."""
        return sum(size for _, size in self.files)


def plan_push(place: Path, name: str) -> Push:
    """Return what a push would send.

    Raises:
        SourceError: no set is published, or the name is not OWNER/NAME.
    """
    folder = published_folder(place)
    try:
        tag = f"v{(read_mark(folder) or {})['version']}"
    except (NotADirectoryError, KeyError) as error:
        raise SourceError(
            f"{folder}: no published set ({MARK} is missing or damaged); give the folder of a run, and finish it with "
            "`goldilocks run`."
        ) from error
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        raise SourceError(f"--to {name}: a data set's name is OWNER/NAME.")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    sizes = tuple((str(path.relative_to(folder)), path.stat().st_size) for path in files)
    return Push(folder, name, tag, sizes, card_license(folder))


def push(planned: Push, *, private: bool, endpoint: str | None = None, token: str | None = None) -> str:
    """Push a set as one tagged commit, unless its tag exists; return the commit's URL.

    Args:
        private: for a new data set.
        endpoint: by default ``HF_ENDPOINT`` or the client's.
        token: by default ``HF_TOKEN`` or that of `hf auth login`.

    Raises:
        HubError: the hub fails or refuses, or has other files under this tag.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    api = HfApi(endpoint=endpoint, token=token)
    with _as_hub_errors(planned.name):
        api.create_repo(planned.name, repo_type="dataset", private=private, exist_ok=True)
        tags = {ref.name: ref.target_commit for ref in api.list_repo_refs(planned.name, repo_type="dataset").tags}
        if planned.tag in tags:
            if not _is_there(api, planned):
                raise HubError(
                    f"{planned.name} has {planned.tag} already, with other files; a version is never moved. "
                    "`goldilocks diff` prints what differs."
                )
            return f"{api.endpoint}/datasets/{planned.name}/commit/{tags[planned.tag]}"
        done = api.upload_folder(
            repo_id=planned.name,
            repo_type="dataset",
            folder_path=planned.folder,
            commit_message=f"Version {planned.tag.removeprefix('v')}, curated by Goldilocks",
            delete_patterns="*",  # what the folder no longer has goes
        )
        api.create_tag(planned.name, repo_type="dataset", tag=planned.tag, revision=done.oid)
    return str(done.commit_url)


def _is_there(api: HfApi, planned: Push) -> bool:
    from huggingface_hub import RepoFile
    from huggingface_hub.utils.sha import git_hash

    tree = api.list_repo_tree(planned.name, repo_type="dataset", revision=planned.tag, recursive=True)
    files = [file for file in tree if isinstance(file, RepoFile) and file.path != ".gitattributes"]
    there = {file.path: file.blob_id if file.lfs is None else file.lfs.sha256 for file in files}
    if there.keys() != {path for path, _ in planned.files}:
        return False
    contents = ((digest, (planned.folder / path).read_bytes()) for path, digest in there.items())
    return all(digest in (git_hash(content), hashlib.sha256(content).hexdigest()) for digest, content in contents)


@contextmanager
def _as_hub_errors(name: str) -> Iterator[None]:
    """Raise the hub client's errors as `HubError`."""
    try:
        yield
    except GoldilocksError:
        raise
    except Exception as error:
        of_client = type(error).__module__.startswith(("httpx", "huggingface_hub"))
        if not of_client and not isinstance(error, OSError | RuntimeError):
            raise  # an upload's error is a RuntimeError
        words = " ".join(str(getattr(error, "server_message", None) or error).split())
        response = getattr(error, "response", None)
        status = f"answers {response.status_code}" if response is not None else "cannot be asked"
        raise HubError(
            f"{name}: the hub {status}: {words:.200}; an interrupted push publishes nothing. Try again with "
            "an HF_TOKEN (or `hf auth login`) of an owner who may write, and without HF_HUB_OFFLINE."
        ) from error
