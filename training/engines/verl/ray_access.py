"""Join a Ray cluster that may require a token, which Ray sends only if ``RAY_AUTH_MODE`` is ``token``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

MODE, TOKENS = "RAY_AUTH_MODE", ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")

_REFUSED = ("InvalidAuthToken", "AuthenticationError")
"""What Ray's processes print where a token is missing or wrong."""


def token_variables(address: str | None, variables: Mapping[str, str]) -> dict[str, str]:
    """Return what makes Ray send its token to ``address``, if one is named."""
    if address is None or MODE in variables or not any(variables.get(name) for name in TOKENS):
        return {}
    return {MODE: "token"}


def refusal(address: str | None, said: str, log: Path) -> str:
    """Return a sentence if the cluster refused the token; else empty."""
    if address is None or not any(words in said for words in _REFUSED):
        return ""
    return (
        f"verl.ray_address = {address!r}: the Ray cluster asks for a token, and this run sent none or another; set "
        f"{TOKENS[0]} to the one that the cluster was started with, or {TOKENS[1]} to the file that holds it, such as "
        f"~/.ray/auth_token of its head (what Ray said: {log})."
    )
