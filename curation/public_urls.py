"""Remove secrets from URLs; only requests use the full one."""

from __future__ import annotations

import re
from urllib.parse import unquote_plus

_URL = re.compile(r"""[A-Za-z][A-Za-z0-9+.-]{0,19}://[^\s"'`<>|]*""")
_CHAIN_PART = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://"
    r"(?P<user>[^/?#]*@|[^/?#:@\[]*:(?!:|\d*(?:[/?#]|$)).*@)?"  # a password may have an unquoted slash
    r"(?P<host>\[[0-9A-Fa-f:.]*\])?"
    r"(?P<rest>.*?)(?=::[A-Za-z/.~]|$)",
    re.DOTALL,
)
_NAMED_BEFORE_HOST = frozenset({"abfs", "abfss", "wasb", "wasbs", "git", "github"})
"""Schemes whose user is a container or repository."""

_PUBLIC = frozenset(
    (
        *("alt", "branch", "config", "dataset", "dl", "download", "export", "file", "filename", "format", "id", "lang"),
        *("language", "length", "limit", "name", "offset", "page", "path", "raw", "ref", "rev"),
        *("revision", "row", "rows", "split", "subset", "table", "version", "versionid"),
    )
)
"""Query parameters that name a file; others may be secrets."""

_PLAIN = re.compile(r"[\w./,+ -]*")


def public_url(url: str) -> str:
    """Remove secrets from a URL, or a chain of them.

    >>> public_url("https://me:pw@host/rows.jsonl?id=3&X-Amz-Signature=9f")
    'https://host/rows.jsonl?id=3'
    >>> public_url("zip://a.jsonl::https://host/a.zip?sig=9f"), public_url("s3://bucket/rows-?.jsonl")
    ('zip://a.jsonl::https://host/a.zip', 's3://bucket/rows-?.jsonl')
    """
    return _CHAIN_PART.sub(_public_part, url)


def public_text(text: str) -> str:
    """Make a text's URLs public.

    >>> public_text("GET https://me:pw@host/a?token=1 (403).")
    'GET https://host/a (403).'
    """
    return _URL.sub(_public_match, text) if "://" in text else text


def _public_match(match: re.Match[str]) -> str:
    url = match[0].rstrip(").,;:]}")
    return public_url(url) + match[0][len(url) :]


def _public_part(match: re.Match[str]) -> str:
    scheme, user, host, rest = match["scheme"], match["user"] or "", match["host"] or "", match["rest"]
    if scheme.lower() not in _NAMED_BEFORE_HOST:
        user = ""
    is_web = scheme.lower() in ("http", "https")
    if is_web:
        rest = rest.partition("#")[0]
    path, mark, query = rest.partition("?")
    if not is_web and "=" not in query:  # a sign of a glob
        return f"{scheme}://{user}{host}{rest}"
    kept = "&".join(pair for pair in re.split("[&;]", query) if _is_public(pair))
    return f"{scheme}://{user}{host}{path}{mark if kept else ''}{kept}"


def _is_public(pair: str) -> bool:
    name, equals, value = pair.partition("=")
    return bool(equals) and unquote_plus(name).lower() in _PUBLIC and bool(_PLAIN.fullmatch(unquote_plus(value)))
