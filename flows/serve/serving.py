"""`goldilocks serve`, and the Prefect server behind it: with its page, its scheduler and its triggers.

Where PREFECT_API_URL names a server, that one is used. Else one is started on the loopback interface; it keeps its
records in PREFECT_HOME as SQLite, or in PostgreSQL where PREFECT_API_DATABASE_CONNECTION_URL names one
(``postgresql+asyncpg://user:password@host:5432/name``). It ends with the process that serves.

Prefect reads its settings when it is first imported, so that happens here once the server is up, and not before.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from curation.records import ConfigError, GoldilocksError
from flows.run.recipe import load_recipe
from flows.serve.server import stop, wait_for_server

PORT = 4200
"""Where the page is looked for by default; Prefect's own."""

SERVED = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_CLI_PROMPT": "false",
    "DO_NOT_TRACK": "1",
}

DATABASE = "PREFECT_API_DATABASE_CONNECTION_URL"


@contextmanager
def serving_api(port: int = PORT) -> Iterator[str]:
    """Yield the address of a Prefect API that schedules and triggers, for the length of the block.

    Raises:
        GoldilocksError: the port is taken, or the server does not come up.
    """
    for name, value in SERVED.items():
        os.environ.setdefault(name, value)
    user_api = os.environ.get("PREFECT_API_URL")
    if user_api:
        yield user_api
        return
    _require_free(port)
    address = f"http://127.0.0.1:{port}/api"
    process = subprocess.Popen(
        [sys.executable, "-m", "flows.serve.server", str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={
            **os.environ,
            "PREFECT_SERVER_API_HOST": "127.0.0.1",
            "PREFECT_SERVER_API_PORT": str(port),
            "PREFECT_UI_API_URL": address,
        },
        start_new_session=True,
    )
    os.environ["PREFECT_API_URL"] = address
    try:
        ended = f"run `python -m flows.serve.server 4200` to see why, and look at {DATABASE} if you set it"
        wait_for_server(process, address, "Prefect's server", ended=ended, silent="start it again")
        yield address
    finally:
        os.environ.pop("PREFECT_API_URL", None)
        stop(process)


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise GoldilocksError(
                f"port {port} is taken ({error.strerror}); give another --port, or set PREFECT_API_URL to the server "
                "that runs there."
            ) from error


def serve_recipes(paths: Sequence[Path], out: Path | None = None, port: int | None = None) -> None:
    """Register the recipes' deployments and run what falls due, until interrupted (`goldilocks serve`).

    Args:
        out: the run folder, where there is one recipe; runs/NAME where absent.

    Raises:
        ConfigError: a recipe cannot be meant, two have one name, or ``out`` is given for several.
    """
    recipes = [load_recipe(path) for path in paths]
    names = [recipe.name for recipe in recipes]
    if len(set(names)) < len(names):
        raise ConfigError(f"two of the recipes have one name ({', '.join(sorted(names))}); their names must differ.")
    if out is not None and len(paths) > 1:
        raise ConfigError("--out goes with one recipe; without it each runs in runs/NAME.")
    console = Console(highlight=False, markup=False, soft_wrap=True)
    with serving_api(port or PORT) as address:
        from prefect import serve

        from flows.serve.schedule import deployments, limit_gpus, schedule_phrase

        registered = [deployment for path in paths for deployment in deployments(path, out)]
        limit_gpus(min(recipe.schedule.gpus for recipe in recipes))
        console.print(f"serving at {address.removesuffix('/api')}; Ctrl-C ends it")
        for deployment in registered:
            starts = ", ".join(schedule_phrase(deployment))
            console.print(f"  {deployment.flow_name}/{deployment.name}: {starts or 'when it is asked for'}")
        serve(*registered, print_starting_message=False)
