"""The page as an ASGI application, and `goldilocks page`, which serves it."""

from __future__ import annotations

import os
import secrets
import weakref
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from curation.http_server import address_of, listen, server_of
from curation.records import GoldilocksError, StoreError
from curation.server_guard import LOCAL, is_same
from flows.page import problem_page, review_tab, run_tab
from flows.page.open_runs import OpenRuns
from flows.page.rendering import STATIC, show
from flows.page.security import ENTRY, Guard, derived, root_of, set_cookie


def make_app(root: Path, token: str | None = None, only: Sequence[str] = ()) -> ASGIApp:
    """Return the page of a run, or of a folder with runs.

    Args:
        token: what visitors must show; None only if no other machine can reach the page.
        only: shown folders; empty for all.
    """
    routes = [
        Route("/", _index, name="index"),
        Route("/enter", _enter, methods=["GET", "POST"]),
        Mount("/static", StaticFiles(directory=STATIC)),
        *run_tab.ROUTES,
        *problem_page.ROUTES,
        *review_tab.ROUTES,
    ]
    inner = Starlette(routes=routes, exception_handlers={GoldilocksError: _sentence, 404: _sentence})
    inner.state.page = runs = OpenRuns(root.resolve(), token, only)
    weakref.finalize(inner, runs.close)
    return Guard(inner, token)


def _index(request: Request) -> Response:
    runs = request.app.state.page.find_runs()
    if len(runs) == 1:
        return RedirectResponse(f"r/{runs[0].name}/", 303)
    return show(request, "index.html", runs=runs, root=request.app.state.page.root.name)


async def _enter(request: Request) -> Response:
    """Set the cookie for a right token."""
    token = request.app.state.page.token
    if token is None:
        return RedirectResponse("./", 303)
    is_typed = request.method == "POST"
    asked = (await request.body()).decode(errors="replace") if is_typed else request.url.query
    given = parse_qs(asked).get("token", [""])[0]
    if not is_same(given, token):
        return show(request, "enter.html", 403 if given else 200, wrong=bool(given))
    response = RedirectResponse("./", 303)
    set_cookie(response, root_of(request), ENTRY, derived(token, "page"))
    return response


def _sentence(request: Request, error: Exception) -> HTMLResponse:
    name = request.path_params.get("run")
    run = next((run for run in request.app.state.page.find_runs() if run.name == name), None)
    known = {"run": run, "tab": ""} if run is not None else {}
    if isinstance(error, HTTPException):
        return show(request, "error.html", 404, sentence="There is nothing under this address.", **known)
    return show(request, "error.html", 422, sentence=str(error), **known)


TOKEN = "GOLDILOCKS_PAGE_TOKEN"
"""Environment variable of the token for other machines."""


def serve_page(folder: Path, host: str, port: int) -> None:
    """Serve until interrupted; other hosts need a token, that of `TOKEN` or a new one.

    Args:
        port: 0 takes a free one; the address is printed.

    Raises:
        StoreError: the folder has no run.
        GoldilocksError: the port cannot be used.
    """
    if not folder.is_dir() or not OpenRuns(folder.resolve()).find_runs():
        raise StoreError(
            f"{folder} holds no curation run (no run.json); give the folder of a run, or of runs. "
            "Training runs are shown by `tensorboard --logdir DIR`."
        )
    token = os.environ.get(TOKEN) or (None if host in LOCAL else secrets.token_urlsafe(18))
    listening = listen(host, port)
    print(f"page: {address_of(listening)}/{f'enter?token={token}' if token else ''} ; Ctrl-C ends it", flush=True)
    server_of(make_app(folder, token)).run(sockets=[listening])
