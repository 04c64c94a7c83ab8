"""The client of model servers over HTTP: the key, which server to ask, and which requests to repeat.

Invariants:
  - a request that was answered is never asked again, and a call of `ask` ends with one answer or fails;
  - what a server could not answer for now (429, 5xx, no answer in time, a broken connection) is asked again after a
    pause that doubles, with chance added, of whichever other server has the shortest queue; `Retry-After` is obeyed;
  - what servers that live will not answer is refused (`RequestRefused`): a status of 400 and the like at once, a 5xx, a
    broken connection or an unusable answer at every try. No server, no key and no model end the run (`PolicyError`);
  - cancelling a call closes the connection, at which vLLM aborts the generation;
  - the key never stands in settings, errors or the store.

A straggler may be hedged: a request that takes `hedge` times the 95th percentile of the last answers is asked of
another server too, if one has room; the first answer counts, the other request is closed. Both draw with the same seed.

Not here: what is asked (`curation.policies.endpoint`, and for training `training.generation.vllm_client`), which server
has the shortest queue (`curation.policies.servers`), the connection (`curation.policies.connection`).
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from curation.config.engines import ServerSettings
from curation.policies.concurrency import AdaptiveLimit
from curation.policies.connection import HttpSession, ServerResponse
from curation.policies.latencies import RecentLatencies
from curation.policies.servers import Server, Servers, TemporaryFailure
from curation.records import PolicyError, RequestRefused

_T = TypeVar("_T")
_BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
"""Statuses that another try may mend."""

_OVERLOADED = frozenset({429, 503})
"""Statuses that say that a server has more requests than it bears."""

_LONGEST_PAUSE_S = 60.0

_HEDGED_SHARE = 0.05
"""At most this share of the requests is asked twice."""


class ServerClient:
    """Asks the servers of one model. Lives inside its ``async with`` block, in one event loop.

    ``hedged`` counts the requests that were asked of two servers.

    Args:
        settings: how patiently they are asked.
        model: the name under which they hold it; None: the first that each lists.
        urls: their addresses, where not as the settings have them.
        models: path of the list of models under each address.
        hedge: how many times the 95th percentile of the last answers a request may take; 0: as long as it likes.
        welcome: what is to be done before a server gets requests, when it is met first and whenever it has been away:
            its address and its context in tokens, where it says so. Raises `TemporaryFailure` where the server cannot
            answer for now, `PolicyError` where it never will.

    Raises:
        PolicyError: the environment lacks the key; on entering: no server answers, or one never will.
    """

    def __init__(
        self,
        settings: ServerSettings,
        model: str | None,
        *,
        welcome: Callable[[str, int | None], Awaitable[None]],
        urls: Sequence[str] | None = None,
        models: str = "/models",
        hedge: float = 0.0,
    ) -> None:
        self.context: int | None = None
        """Tokens of prompt and answer together, the least of all servers, as far as they say."""
        self._settings, self._model, self._models, self._welcome = settings, model, models, welcome
        self.servers = Servers(urls or settings.urls, self._limit, settings.give_up_s, self._greet)
        self.asked = self.hedged = 0
        self._headers = _authorisation(settings.api_key_env, model)
        self._hedge, self._latencies = hedge if len(self.servers.all) > 1 else 0.0, RecentLatencies()
        self._http: HttpSession | None = None

    async def __aenter__(self) -> Self:
        self._http = HttpSession(self._headers, self._settings.connect_s, self._settings.request_s)
        has_entered = False
        try:
            await self.servers.greet()
            has_entered = True
        finally:
            if not has_entered:
                await self.close()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def ask(
        self,
        path: str,
        body: Callable[[], Mapping[str, Any]],
        read: Callable[[Server, ServerResponse], _T],
        request: str,
        home: str = "",
    ) -> _T:
        """Return what ``read`` makes of the answer of whichever server has the shortest queue.

        Args:
            path: under the server's address.
            body: called once for each try, when a server has room.
            read: gets every answer whose status no other try would mend; raises `TemporaryFailure` where the request
                is worth another try all the same.
            request: what errors call it.
            home: requests of one home, as of one problem, go to one server where they can.

        Raises:
            RequestRefused: the servers live and do not answer this request.
            PolicyError: the servers are too busy, or no server is alive; whatever ``read`` raises.
        """
        failures, tried = 0, set[str]()
        self.asked += 1
        while True:
            server = await self.servers.acquire(tried, home)
            try:
                if self._hedge:
                    return await self._ask_hedged(server, path, body, read)
                return read(server, await self._post_to(server, path, body()))
            except TemporaryFailure as failure:
                failures += 1
                kind, last = failure.kind, f"{server.url}: {failure}"
                tried.add(server.url)
            finally:
                self.servers.release(server)
            if failures > self._settings.retries:
                why = f"{request}: failed {failures} times, last at {last}."
                raise RequestRefused(kind, why) if kind else PolicyError(why)
            if len(tried) == len(self.servers.all):
                tried.clear()
            await asyncio.sleep(self._pause_s(failures))

    async def _ask_hedged(
        self,
        server: Server,
        path: str,
        body: Callable[[], Mapping[str, Any]],
        read: Callable[[Server, ServerResponse], _T],
    ) -> _T:
        """Ask one server, and where it takes long another too; return the first answer.

        Raises:
            TemporaryFailure: the first server failed, and no other was asked or it failed too.
        """

        async def ask(one: Server) -> _T:
            return read(one, await self._post_to(one, path, body()))

        if (delay := self._straggling_s()) is None:
            return await ask(server)
        loop = asyncio.get_running_loop()
        winner: asyncio.Future[asyncio.Task[_T]] = loop.create_future()
        requests: list[asyncio.Task[_T]] = []

        def settle(task: asyncio.Task[_T]) -> None:
            if winner.done() or task.cancelled():
                return
            if all(one.done() for one in requests) or not isinstance(task.exception(), TemporaryFailure):
                winner.set_result(task)

        def start(one: Server) -> None:
            requests.append(asyncio.ensure_future(ask(one)))
            requests[-1].add_done_callback(settle)

        def hedge() -> None:
            if winner.done() or self.hedged >= _HEDGED_SHARE * self.asked:
                return
            other = self.servers.try_acquire({server.url})
            if other is not None:
                self.hedged += 1
                start(other)
                requests[-1].add_done_callback(lambda _: self.servers.release(other))

        start(server)
        timer = loop.call_later(delay, hedge)
        try:
            return (await winner).result()
        finally:
            timer.cancel()
            if not all(task.done() for task in requests):
                for task in requests:
                    task.cancel()
                await asyncio.gather(*requests, return_exceptions=True)

    def _straggling_s(self) -> float | None:
        """Return the seconds after which a request is a straggler; None while too few were answered to tell."""
        usual = self._latencies.quantile
        return None if usual is None else self._hedge * usual

    async def post(self, url: str, body: Mapping[str, Any], limit_s: float | None = None) -> ServerResponse:
        """Post a body and return the server's answer, whatever its status; ``limit_s`` replaces the settings'
        ``request_s``.

        Raises:
            TemporaryFailure: the connection broke.
        """
        return await self._open_session().post(url, body, limit_s)

    async def get(self, url: str) -> ServerResponse:
        """Get an address and return the server's answer, whatever its status, within ``connect_s`` of the settings.

        Raises:
            TemporaryFailure: the connection broke.
        """
        return await self._open_session().get(url, self._settings.connect_s)

    def require_ok(self, response: ServerResponse, url: str) -> None:
        """Raise for every status but 200: `TemporaryFailure` where another try may do; `PolicyError` for a wrong key,
        address or model; else `RequestRefused`.
        """
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
            raise PolicyError(f"{url}: knows no such address or model ({self._model!r}): 404 {message(response)}.")
        raise RequestRefused(_refusal_kind(response), f"{url}: {status} {message(response)}.")

    async def _post_to(self, server: Server, path: str, body: Mapping[str, Any]) -> ServerResponse:
        """Send one request to one server and return its answer.

        Where the connection broke, or the server asks for a pause, it gets nothing more for now.

        Raises:
            TemporaryFailure: the connection broke, or the server is busy.
        """
        begun = time.monotonic()
        try:
            response = await self.post(server.url + path, body)
        except TemporaryFailure as failure:
            server.limit.refused(time.monotonic())
            self.servers.suspect(server, str(failure))
            raise
        now = time.monotonic()
        status = response.status
        if status in _BUSY:
            server.trouble = f"{status} {message(response)}"
            if status in _OVERLOADED:
                server.limit.refused(now)
            if (pause := _retry_after(response)) is not None:
                server.paused_until = now + pause
            raise TemporaryFailure(server.trouble, str(status) if status >= 500 else "")
        server.limit.answered(len(response.content), now - begun, now, server.outstanding)
        if self._hedge:
            self._latencies.add(now - begun)
        return response

    async def _greet(self, url: str) -> None:
        """Check that a server holds the model, and have it welcomed."""
        response = await self.get(url + self._models)
        self.require_ok(response, url)
        context = _context_of(response, url, self._model)
        if context is not None:
            self.context = min(context, self.context or context)
        await self._welcome(url, context)

    def _limit(self) -> AdaptiveLimit:
        return AdaptiveLimit(self._settings.most_per_server, probes=self._settings.per_server == "auto")

    def _pause_s(self, failures: int) -> float:
        """Return the seconds to wait after so many failures in a row: doubling, up to a minute, with chance added."""
        return min(_LONGEST_PAUSE_S, self._settings.back_off_s * 2.0 ** (failures - 1)) * random.uniform(0.5, 1.0)

    def _open_session(self) -> HttpSession:
        if self._http is None:
            raise PolicyError("servers are asked before they were entered, or after they were left: use `async with`.")
        return self._http

    async def close(self) -> None:
        """End the probing, and all connections."""
        await self.servers.close()
        session, self._http = self._http, None
        if session is not None:
            await session.close()


def message(response: ServerResponse) -> str:
    """Return a server's own error message, in one line of at most 200 letters."""
    try:
        content = response.json()
    except ValueError:
        content = response.text
    if isinstance(content, Mapping):
        error = content.get("error", content)
        content = error.get("message", error) if isinstance(error, Mapping) else error
    return f"{' '.join(str(content).split()):.200}".rstrip(".")


def _refusal_kind(response: ServerResponse) -> str:
    """Return what a refused request is counted as: its status, or ``content_filter`` where the server names that."""
    return "content_filter" if b"content_filter" in response.content else str(response.status)


def _context_of(response: ServerResponse, url: str, model: str | None) -> int | None:
    """Return the context of ``model`` in tokens, from the server's list of models; None where the list does not say.

    Raises:
        PolicyError: it is no such list, or the model is not in it.
    """
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
    """Return the header with the key that the environment holds under ``name``; empty where no name is given.

    Raises:
        PolicyError: the environment has no such key, or one that no header can hold.
    """
    if name is None:
        return {}
    whose, key = f"model {model or 'of the servers'}", os.environ.get(name)
    if not key:
        raise PolicyError(f"{whose}: the environment has no {name}; api_key_env names it.")
    if not key.isprintable():
        raise PolicyError(f"{whose}: the key in {name} has a line break or another control character; set it again.")
    return {"Authorization": f"Bearer {key}"}


def _retry_after(response: ServerResponse) -> float | None:
    """Return the seconds that a server asks to be left alone; a date is taken for an unknown wait."""
    try:
        return min(max(float(response.retry_after or ""), 0.0), 10 * _LONGEST_PAUSE_S)
    except ValueError:
        return None
