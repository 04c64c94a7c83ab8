"""The HTTP client of model servers.

Invariants:
  - temporary failures are retried after a pause, if possible on another server; usable answers are kept;
  - a request that fails on living servers is refused; a missing server, key or model ends the run;
  - cancelling a call aborts its generation;
  - keys are never part of settings, errors or the store.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.request import getproxies, proxy_bypass

import orjson

from curation.config import ServerSettings
from curation.policies.servers import Server, Servers, TemporaryFailure
from curation.records import PolicyError, RequestRefused

if TYPE_CHECKING:
    from yarl import URL

_T = TypeVar("_T")
_BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
"""Statuses after which another try may succeed."""

_OVERLOADED = frozenset({429, 503})

_MAX_PAUSE_S = 60.0


@dataclass(frozen=True, slots=True)
class Patience:
    """Timeouts in seconds, and retries."""

    retries: int = 8
    connect_s: float = 10.0
    answer_s: float = 3600.0  # for bytes of an answer
    back_off_s: float = 0.5  # the first pause; it doubles up to a minute, with jitter
    give_up_s: float = 300.0  # without any living server until the run stops


PATIENCE = Patience()


@dataclass(frozen=True, slots=True)
class ServerResponse:
    """An answer of any status."""

    status: int
    content: bytes
    url: str
    retry_after: str | None = None

    @property
    def text(self) -> str:
        """Return the body."""
        return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        """Parse the body.

        Raises:
            ValueError: it is no JSON.
        """
        try:
            return orjson.loads(self.content)
        except orjson.JSONDecodeError:
            return json.loads(self.content)  # NaN, half of a surrogate pair


class ServerClient:
    """The client of one model's servers.

    Args:
        model: None: the servers' first.
        models: path of the list of models.
        welcome: called with URL and context in tokens before a server's first request and after outages; may raise
            `TemporaryFailure` or `PolicyError`.

    Raises:
        PolicyError: the key is missing, or on entering no server is usable.
    """

    def __init__(
        self,
        settings: ServerSettings,
        model: str | None,
        *,
        welcome: Callable[[str, int | None], Awaitable[None]],
        urls: Sequence[str] | None = None,
        models: str = "/models",
    ) -> None:
        self.context: int | None = None
        """Max tokens of prompt and answer on every server."""
        self._settings, self._model, self._models, self._welcome = settings, model, models, welcome
        self.servers = Servers(urls or settings.urls, settings.in_flight, PATIENCE.give_up_s, self._greet)
        self._headers = _authorisation(settings.api_key_env, model)
        self.retried = 0
        """Number of retries."""

    async def __aenter__(self) -> Self:
        import aiohttp

        connector = aiohttp.TCPConnector(limit=0, ssl=_ssl_context())
        self._session = aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), headers=self._headers
        )
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.close)
            await self.servers.greet()
            stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def ask(
        self,
        path: str,
        body: Callable[[], Mapping[str, Any]],
        read: Callable[[Server, ServerResponse], _T],
        request: str,
    ) -> _T:
        """Return what ``read`` makes of a server's answer.

        Args:
            body: called per try.
            read: raises `TemporaryFailure` to retry.

        Raises:
            RequestRefused: living servers do not answer it.
            PolicyError: all servers are busy or dead.
        """
        failures, tried = 0, set[str]()
        while True:
            server = await self.servers.acquire(tried)
            try:
                return read(server, await self._post_to(server, path, body()))
            except TemporaryFailure as failure:
                failures += 1
                kind, last, wait = failure.kind, f"{server.url}: {failure}", failure.retry_after_s
                tried.add(server.url)
            finally:
                self.servers.release(server)
            if failures > PATIENCE.retries:
                why = f"{request}: failed {failures} times, last at {last}."
                raise RequestRefused(kind, why) if kind else PolicyError(why)
            pause = min(_MAX_PAUSE_S, PATIENCE.back_off_s * 2.0 ** (failures - 1)) * random.uniform(0.5, 1.0)
            if len(tried) == len(self.servers.all):
                tried.clear()
                pause = max(pause, wait)
            self.retried += 1
            await asyncio.sleep(pause)

    @property
    def health(self) -> dict[str, float]:
        """Return failures, retries and latency."""
        servers = self.servers.all
        latencies = [server.limit.latency_s for server in servers if server.limit.latency_s]
        return {
            "busy": sum(server.busy for server in servers),
            "failed": sum(server.failed for server in servers),
            "asked_again": self.retried,
            "latency_s": round(sum(latencies) / max(len(latencies), 1), 2),
        }

    async def post(self, url: str, body: Mapping[str, Any], answer_s: float | None = None) -> ServerResponse:
        """Post JSON; return an answer of any status.

        Raises:
            TemporaryFailure: the connection broke or timed out.
        """
        return await self._request("POST", url, orjson.dumps(body), answer_s or PATIENCE.answer_s)

    async def get(self, url: str) -> ServerResponse:
        """Get an answer of any status, as `post` does."""
        return await self._request("GET", url, None, PATIENCE.connect_s)

    async def _request(self, method: str, url: str, data: bytes | None, answer_s: float) -> ServerResponse:
        import aiohttp

        address, proxy = _address_and_proxy(url)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=PATIENCE.connect_s, sock_read=answer_s)
        headers = {"Content-Type": "application/json"} if data is not None else None
        try:
            async with self._session.request(
                method, address, data=data, headers=headers, timeout=timeout, proxy=proxy, allow_redirects=False
            ) as response:
                content = await response.read()
                return ServerResponse(response.status, content, url, response.headers.get("Retry-After"))
        except aiohttp.ClientConnectorError as error:
            raise TemporaryFailure(f"cannot be reached ({error.strerror or type(error).__name__})") from error
        except aiohttp.ConnectionTimeoutError as error:
            raise TemporaryFailure(f"cannot be reached within {PATIENCE.connect_s:g} s") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            why = " ".join(str(error).split())
            raise TemporaryFailure(f"{type(error).__name__} {why}".strip(), "no_answer") from error

    def require_ok(self, response: ServerResponse, url: str) -> None:
        """Raise `TemporaryFailure`, `PolicyError` or `RequestRefused` unless the status is 200."""
        status = response.status
        if status == 200:
            return
        if status in _BUSY:
            raise TemporaryFailure(f"{status} {message(response)}")
        if status in (401, 403):
            name = self._settings.api_key_env
            key = f"the key in {name}" if name else "a request without key: api_key_env"
            raise PolicyError(f"{url}: refuses {key} ({status} {message(response)}).")
        if status == 404:
            raise PolicyError(f"{url}: has no such address or model ({self._model!r}): 404 {message(response)}.")
        kind = "content_filter" if b"content_filter" in response.content else str(status)
        raise RequestRefused(kind, f"{url}: {status} {message(response)}.")

    async def _post_to(self, server: Server, path: str, body: Mapping[str, Any]) -> ServerResponse:
        start = time.monotonic()
        try:
            response = await self.post(server.url + path, body)
        except TemporaryFailure as failure:
            server.failed += 1
            server.limit.refused(time.monotonic())
            self.servers.suspect(server, str(failure))
            raise
        now = time.monotonic()
        status = response.status
        if status in _BUSY:
            server.trouble, wait = f"{status} {message(response)}", _retry_after(response)
            server.busy += status < 500
            server.failed += status >= 500
            if status in _OVERLOADED and server.limit.refused(now):
                server.paused_until = max(server.paused_until, now + wait)
            raise TemporaryFailure(server.trouble, str(status) if status >= 500 else "", wait)
        server.limit.answered(now - start, server.outstanding)
        return response

    async def _greet(self, url: str) -> None:
        response = await self.get(url + self._models)
        self.require_ok(response, url)
        context = _context_of(response, url, self._model)
        if context is not None:
            self.context = min(context, self.context or context)
        await self._welcome(url, context)

    async def close(self) -> None:
        """End probes and connections."""
        await self.servers.close()
        await self._session.close()


@lru_cache
def _address_and_proxy(url: str) -> tuple[URL, str | None]:
    from yarl import URL

    address = URL(url)
    return address, None if proxy_bypass(address.host or "") else getproxies().get(address.scheme)


def message(response: ServerResponse) -> str:
    """Return a server's error on one line."""
    try:
        content = response.json()
    except ValueError:
        content = response.text
    if isinstance(content, Mapping):
        error = content.get("error", content)
        content = error.get("message", error) if isinstance(error, Mapping) else error
    return f"{' '.join(str(content).split()):.200}".rstrip(".")


def _context_of(response: ServerResponse, url: str, model: str | None) -> int | None:
    """Return the model's context in tokens, if stated."""
    try:
        contexts = {str(entry["id"]): entry.get("max_model_len") for entry in response.json()["data"]}
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise PolicyError(f"{url}: no OpenAI-compatible server; {response.url} holds no list of models.") from error
    name = model or next(iter(contexts), "")
    if name not in contexts:
        raise PolicyError(f"{url}: holds no model {name!r}, but {', '.join(contexts) or 'none'}.")
    context = contexts[name]
    return context if isinstance(context, int) else None


def _authorisation(name: str | None, model: str | None) -> dict[str, str]:
    if name is None:
        return {}
    whose, key = f"model {model or 'of the servers'}", os.environ.get(name)
    if not key:
        raise PolicyError(f"{whose}: the environment has no {name}; api_key_env names it.")
    if not key.isprintable():
        raise PolicyError(f"{whose}: the key in {name} has a line break or another control character; set it again.")
    return {"Authorization": f"Bearer {key}"}


def _retry_after(response: ServerResponse) -> float:
    try:
        return min(max(float(response.retry_after or 0.0), 0.0), 10 * _MAX_PAUSE_S)
    except ValueError:
        return 0.0


def _ssl_context() -> ssl.SSLContext:
    """Return the environment's certificates, or certifi's."""
    import certifi

    return ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE") or certifi.where())
