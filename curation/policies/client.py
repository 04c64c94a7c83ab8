"""What every request to a server needs: the connection, the key, which answers are worth another try, and when.

The key never stands in settings, errors or the store.

Not here: what is asked, and of whom (`curation.policies.servers`).
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from curation.records import PolicyError

if TYPE_CHECKING:
    import httpx

    from curation.policies.servers import Server

AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
"""Statuses that another try may mend."""

LONGEST_PAUSE_S = 60.0


class Again(Exception):
    """This request is worth asking again; the text says why."""


def open_client(request_s: float, connect_s: float, headers: Mapping[str, str]) -> httpx.AsyncClient:
    """A client with as many connections as there are requests, each used again; limits in seconds."""
    import httpx

    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    return httpx.AsyncClient(timeout=httpx.Timeout(request_s, connect=connect_s), limits=limits, headers=headers)


def pause_after(failed: int, back_off_s: float) -> float:
    """Seconds to wait after so many failures in a row: doubling, up to a minute, with chance added."""
    return min(LONGEST_PAUSE_S, back_off_s * 2.0 ** (failed - 1)) * random.uniform(0.5, 1.0)


def raise_if_busy(server: Server, response: httpx.Response) -> None:
    """Raise `Again` where the status says that another try may do, and leave the server alone as long as it asks."""
    if response.status_code not in AGAIN:
        return
    server.trouble = f"{response.status_code} {message(response)}"
    if (wait := retry_after(response)) is not None:
        server.paused_until = time.monotonic() + wait
    raise Again(server.trouble)


def context_of(response: httpx.Response, url: str, model: str | None) -> int | None:
    """Tokens of context that the list of models of the server at ``url`` gives for ``model`` (None: its first), if any.

    Raises:
        PolicyError: it is no such list, or the model is not in it.
    """
    try:
        listed = {str(one["id"]): one.get("max_model_len") for one in response.json()["data"]}
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise PolicyError(f"{url}: no OpenAI-compatible server; {response.url} holds no list of models.") from error
    name = model or next(iter(listed), "")
    if name not in listed:
        raise PolicyError(f"{url}: holds no model {name!r}, but {', '.join(listed) or 'none'}.")
    context = listed[name]
    return context if isinstance(context, int) else None


def authorisation(name: str | None, model: str) -> dict[str, str]:
    """The header with the key that the environment holds under ``name``; none where no name is given.

    Raises:
        PolicyError: the environment has no such key.
    """
    if name is None:
        return {}
    if not os.environ.get(name):
        raise PolicyError(f"model {model}: the environment has no {name}; api_key_env names it.")
    return {"Authorization": f"Bearer {os.environ[name]}"}


def message(response: httpx.Response) -> str:
    """What a server says was wrong, in one line of at most 200 letters."""
    try:
        said = response.json()
    except ValueError:
        said = response.text
    if isinstance(said, Mapping):
        error = said.get("error", said)
        said = error.get("message", error) if isinstance(error, Mapping) else error
    return f"{' '.join(str(said).split()):.200}".rstrip(".")


def retry_after(response: httpx.Response) -> float | None:
    """Seconds that a server asks to be left alone; a date is taken for an unknown wait."""
    try:
        return min(max(float(response.headers["retry-after"]), 0.0), 10 * LONGEST_PAUSE_S)
    except (KeyError, ValueError):
        return None
