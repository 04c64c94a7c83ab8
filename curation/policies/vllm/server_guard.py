"""The guard of a vLLM server that takes weights: an ASGI middleware around all of it, `/health` excepted.

vLLM's own key covers addresses below /v1 and /inference, not those of its development mode, which change weights. With
a key in VLLM_API_KEY every request must carry it; without one it must name this machine and come from no web page.

vLLM imports this in the server's process.
"""

from __future__ import annotations

import os

from curation.server_guard import App, KeyGuard

KEY = "VLLM_API_KEY"


class ServerGuard(KeyGuard):
    """Refuses requests without the key or, if there is no key, those from elsewhere."""

    def __init__(self, app: App) -> None:
        super().__init__(app, os.environ.get(KEY))
