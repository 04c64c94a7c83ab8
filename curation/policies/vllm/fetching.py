"""The folder of new weights for a vLLM worker: on this machine, or fetched over HTTP from the trainer.

The trainer lists a version's files as JSON and serves each (`training.generation.weight_server`). They are kept in
memory until the weights have been loaded.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from curation.storage.scratch import memory_folder

_SILENCE_S = 120.0
"""Seconds without a byte, after which the trainer is taken for gone."""


@contextmanager
def weights_folder(folder: str, url: str) -> Iterator[Path]:
    """Yield the folder of the new weights on this machine.

    Args:
        folder: where they lie, if this machine sees it; may be empty.
        url: where they are fetched from otherwise; may be empty.

    Raises:
        OSError: they cannot be fetched.
    """
    if not url or (folder and any(Path(folder).glob("*.safetensors"))):
        yield Path(folder)
        return
    with tempfile.TemporaryDirectory(prefix="goldilocks-fetched-", dir=memory_folder()) as place:
        with urlopen(f"{url}/", timeout=_SILENCE_S) as answer:
            names = [str(name) for name in json.load(answer)]
        for name in names:
            with (
                urlopen(f"{url}/{name}", timeout=_SILENCE_S) as answer,
                (Path(place) / Path(name).name).open("wb") as kept,
            ):
                shutil.copyfileobj(answer, kept, 2**20)
                if kept.tell() != int(answer.headers["Content-Length"]):
                    raise OSError(f"{url}/{name} ended after {kept.tell()} bytes")
        yield Path(place)
