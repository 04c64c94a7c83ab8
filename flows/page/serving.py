"""`goldilocks page`."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from curation.http_server import address_of, listen, server_of
from curation.records import ConfigError, StoreError
from curation.server_guard import LOCAL
from flows.page.runs import find_runs

TOKEN = "GOLDILOCKS_PAGE_TOKEN"
"""Environment variable of the token for other machines."""


def serve_page(folder: Path, host: str, port: int, prefix: str = "") -> None:
    """Serve until interrupted; other hosts need a token, that of `TOKEN` or a new one.

    Args:
        port: 0 takes a free one; the address is printed.

    Raises:
        StoreError: the folder has no run.
        ConfigError: the prefix is invalid.
        GoldilocksError: the port cannot be used.
    """
    from flows.page.app import make_app

    if not folder.is_dir() or not find_runs(folder.resolve()):
        raise StoreError(
            f"{folder} holds no curation run (no run.json, nor below it); give the folder of a run, or of runs. "
            "Training runs are shown by `tensorboard --logdir DIR`."
        )
    if prefix and not (prefix.startswith("/") and prefix.strip("/")):
        raise ConfigError(f"--prefix {prefix!r}: it must begin with a slash, as in /goldilocks.")
    token = os.environ.get(TOKEN) or (None if host in LOCAL else secrets.token_urlsafe(18))
    prefix = "/" + prefix.strip("/") if prefix else ""
    listening = listen(host, port)
    where = f"{address_of(listening)}{prefix}/"
    print(f"page: {where}{f'enter?token={token}' if token else ''} ; Ctrl-C ends it", flush=True)
    server_of(make_app(folder, token, prefix)).run(sockets=[listening])
