"""Guards every request of the page.

Invariants: without a token only this machine's ``Host`` names are answered; with a token every request except ``enter``
and static files needs its cookie. Changes need a header derived from the cookie and, if sent, a same-origin
``Sec-Fetch-Site``.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp

from curation.server_guard import LOCAL, host_name, is_same

SESSION, ENTRY = "goldilocks_session", "goldilocks_entry"
CSRF_HEADER = "x-goldilocks-csrf"
MOST_BYTES = 1 << 16
"""Of a request's body."""

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def derived(secret: str, use: str) -> str:
    """Return what proves that one knows a secret: the token's cookie (`page`), or a session's header (`csrf`)."""
    return hmac.new(secret.encode(), f"goldilocks {use}".encode(), hashlib.sha256).hexdigest()


class Guard(BaseHTTPMiddleware):
    """Refuses requests, gives browsers a session, sets headers.

    The request's state gets ``session`` and ``csrf``.
    """

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        super().__init__(app)
        self._token = token

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        """Answer a request, or pass it on."""
        session = request.cookies.get(SESSION, "")
        is_new = not session.isalnum()
        session = secrets.token_hex(16) if is_new else session
        request.state.session, request.state.csrf = session, derived(session, "csrf")
        root, is_static = root_of(request), route_of(request).startswith("/static/")  # routing changes them
        response = self._refusal(request, session) or await call_next(request)
        response.headers.update({**HEADERS, "Cache-Control": "no-cache" if is_static else "no-store"})
        if is_new and not is_static:
            set_cookie(response, root, SESSION, session)
        return response

    def _refusal(self, request: Request, session: str) -> Response | None:
        path = route_of(request)
        if self._token is None:
            host = host_name(request.headers.get("host", ""))
            if host not in LOCAL:
                return PlainTextResponse(f"{host}: only names of this machine are answered without a token.", 403)
        elif not (path == "/enter" or path.startswith("/static/")) and not is_same(
            request.cookies.get(ENTRY, ""), derived(self._token, "page")
        ):
            if request.method == "GET" and "text/html" in request.headers.get("accept", ""):
                return Response(status_code=303, headers={"Location": "../" * (path.count("/") - 1) + "enter"})
            return PlainTextResponse("a token is needed: open the page's `enter`.", 401)
        if request.method in ("GET", "HEAD"):
            return None
        if int(request.headers.get("content-length") or MOST_BYTES + 1) > MOST_BYTES:
            return PlainTextResponse("too many bytes, or their number is not given.", 413)
        if path == "/enter" and self._token is not None:
            return None
        from_here = request.headers.get("sec-fetch-site", "same-origin") == "same-origin"
        if not from_here or not is_same(request.headers.get(CSRF_HEADER, ""), derived(session, "csrf")):
            return PlainTextResponse("this request does not come from the page; load it again.", 403)
        return None


def root_of(request: Request) -> str:
    """Return the prefix of the page's addresses."""
    return str(request.scope.get("root_path", ""))


def route_of(request: Request) -> str:
    """Return an address's path within the page."""
    return str(request.scope["path"]).removeprefix(root_of(request))


def set_cookie(response: Response, root: str, name: str, value: str) -> None:
    """Set a cookie for the page's addresses that no script reads and no other site sends."""
    response.set_cookie(name, value, path=f"{root}/", httponly=True, samesite="strict", max_age=30 * 86400)
