"""HTTP requests to model servers, as thin as can be: bytes out, a status and bytes back.

One session of aiohttp for all servers; addresses are parsed and proxies looked up once, bodies are written and read by
orjson. Measured per attempt against a server that answers at once (`tests/benchmarks/bench_client.py`): httpx took 3 ms
of CPU time.

Not here: which server, which statuses, and repeating (`curation.policies.client`). Retries are written there by hand:
each goes to another server than the one that failed, waits where a server asks for it, and must cost nothing where
nothing fails; the libraries that repeat a function's call (tenacity, stamina) know no servers.
"""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies, proxy_bypass

import orjson

from curation.policies.servers import TemporaryFailure, Unreachable

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL


@dataclass(frozen=True, slots=True)
class ServerResponse:
    """A server's answer, whatever its status; ``retry_after`` is the header of that name.

    Example: ``ServerResponse(200, b'{"choices": []}', "http://localhost:8000/v1/completions")``
    """

    status: int
    content: bytes
    url: str
    retry_after: str | None = None

    @property
    def text(self) -> str:
        """Return the body as text."""
        return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        """Return what the body holds as JSON; NaN and lone surrogates, which JSON has not, are read too.

        Raises:
            ValueError: it is no JSON.
        """
        try:
            return orjson.loads(self.content)
        except orjson.JSONDecodeError:
            return json.loads(self.content)


class HttpSession:
    """Connections to any number of servers, kept open between requests. Made inside an event loop.

    Args:
        headers: sent with every request.
        connect_s: seconds to reach a server.
        answer_s: seconds to wait for bytes of an answer.
    """

    def __init__(self, headers: Mapping[str, str], connect_s: float, answer_s: float) -> None:
        import aiohttp

        self._connect_s, self._answer_s = connect_s, answer_s
        self._timeout = self._timeout_of(answer_s)
        self._json = {"Content-Type": "application/json"}
        self._places: dict[str, tuple[URL, str | None]] = {}
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=_ssl_context()),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=headers,
        )

    async def post(self, url: str, body: Mapping[str, Any], answer_s: float | None = None) -> ServerResponse:
        """Post a body as JSON; ``answer_s`` replaces that of all requests.

        Raises:
            TemporaryFailure: the connection broke, or no answer came in time.
        """
        timeout = self._timeout if answer_s is None else self._timeout_of(answer_s)
        return await self._request("POST", url, orjson.dumps(body), timeout)

    async def get(self, url: str, answer_s: float) -> ServerResponse:
        """Get an address.

        Raises:
            TemporaryFailure: the connection broke, or no answer came in time.
        """
        return await self._request("GET", url, None, self._timeout_of(answer_s))

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def _request(
        self, method: str, url: str, data: bytes | None, timeout: aiohttp.ClientTimeout
    ) -> ServerResponse:
        import aiohttp

        place, proxy = self._place(url)
        headers = self._json if data is not None else None
        try:
            async with self._session.request(
                method, place, data=data, headers=headers, timeout=timeout, proxy=proxy, allow_redirects=False
            ) as response:
                content = await response.read()
                return ServerResponse(response.status, content, url, response.headers.get("Retry-After"))
        except aiohttp.ClientConnectorError as error:
            raise Unreachable(f"cannot be reached ({error.strerror or type(error).__name__})") from error
        except aiohttp.ConnectionTimeoutError as error:
            raise Unreachable(f"cannot be reached within {self._connect_s:g} s") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            why = " ".join(str(error).split())
            raise TemporaryFailure(f"{type(error).__name__} {why}".strip(), "no_answer") from error

    def _place(self, url: str) -> tuple[URL, str | None]:
        """Return an address as the session takes it, and the proxy on its way; addresses are few."""
        place = self._places.get(url)
        if place is None:
            from yarl import URL

            parsed = URL(url)
            bypassed = proxy_bypass(parsed.host or "")
            proxy = None if bypassed else getproxies().get(parsed.scheme)
            place = self._places[url] = (parsed, proxy)
        return place

    def _timeout_of(self, answer_s: float) -> aiohttp.ClientTimeout:
        import aiohttp

        return aiohttp.ClientTimeout(total=None, sock_connect=self._connect_s, sock_read=answer_s)


def _ssl_context() -> ssl.SSLContext:
    """Return what servers' certificates are checked by: the file that the environment names, else certifi's."""
    import certifi

    return ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE") or certifi.where())
