"""`goldilocks page`: serve the page of a folder until interrupted."""

from __future__ import annotations

import os
import secrets
import socket
from pathlib import Path

from curation.records import ConfigError, GoldilocksError, StoreError
from flows.page.runs import find_runs
from flows.page.security import LOCAL

TOKEN = "GOLDILOCKS_PAGE_TOKEN"
"""The environment variable that holds the token, where visitors from elsewhere are let in."""


def serve_page(folder: Path, host: str, port: int, prefix: str = "") -> None:
    """Serve until interrupted. Beyond this machine a token is asked for: that of `TOKEN`, or a new one.

    Args:
        port: 0 takes a free one; the address is printed.

    Raises:
        StoreError: the folder holds no run.
        ConfigError: the prefix is none.
        GoldilocksError: the port cannot be had.
    """
    import uvicorn

    from flows.page.app import make_app

    if not folder.is_dir() or not find_runs(folder.resolve()):
        raise StoreError(f"{folder} holds no run (no run.json, nor below it); give the folder of a run, or of runs.")
    if prefix and not (prefix.startswith("/") and prefix.strip("/")):
        raise ConfigError(f"--prefix {prefix!r}: it must begin with a slash, as in /goldilocks.")
    token = os.environ.get(TOKEN) or (None if host in LOCAL else secrets.token_urlsafe(18))
    prefix = "/" + prefix.strip("/") if prefix else ""
    listening = _listen(host, port)
    where = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}{prefix}/"
    print(f"page: {where}{f'enter?token={token}' if token else ''} ; Ctrl-C ends it", flush=True)
    config = uvicorn.Config(make_app(folder, token, prefix), log_level="warning", access_log=False, lifespan="off")
    uvicorn.Server(config).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(128)
    except OSError as error:
        raise GoldilocksError(
            f"{host}:{port} cannot be listened on ({error.strerror}); give another --port."
        ) from error
    return listening
