"""Serve new weights over HTTP to vLLM servers that cannot see the trainer's folder.

Invariants: serves only the folder's files, only with the run's key, and on one address.
"""

from __future__ import annotations

import json
import secrets
import shutil
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from curation.records import PolicyError


class WeightServer:
    """Serve a folder's versions on a thread until `close`, at this machine's ``address``.

    Raises:
        PolicyError: this machine cannot listen there.
    """

    def __init__(self, root: Path, address: str) -> None:
        key = secrets.token_urlsafe(16)
        try:
            self._server = ThreadingHTTPServer((address, 0), _handler(root, key))
        except OSError as error:
            raise PolicyError(
                f"new weights: cannot listen on {address} ({error.strerror}), by which this machine reaches the "
                "servers; give urls to which it has an address of its own."
            ) from error
        self._url = f"http://{address}:{self._server.server_port}/{key}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="weight-server", daemon=True)
        self._thread.start()

    def url_of(self, folder: Path) -> str:
        """Return the URL of a version's files."""
        return f"{self._url}/{folder.name}"

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def address_towards(url: str) -> str:
    """Return this machine's address towards a server; nothing is sent.

    Raises:
        PolicyError: there is no route.
    """
    parts = urlsplit(url)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as towards:
            towards.connect((parts.hostname or "", parts.port or 80))
            return str(towards.getsockname()[0])
    except OSError as error:
        raise PolicyError(f"urls: no way from this machine to {url} ({error.strerror or error}).") from error


def _handler(root: Path, key: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = self.path.split("/")
            if len(parts) != 4 or not secrets.compare_digest(parts[1].encode(), key.encode()):
                self.send_error(404)
                return
            version, name = parts[2:]
            files = {path.name: path for path in (root / version).glob("*.safetensors")} if version[:1] == "v" else {}
            if not files or (name and name not in files):
                self.send_error(404)
            elif name:
                with files[name].open("rb") as content:
                    self._begin(files[name].stat().st_size, "application/octet-stream")
                    shutil.copyfileobj(content, self.wfile, 2**20)
            else:
                listed = json.dumps(sorted(files)).encode()
                self._begin(len(listed), "application/json")
                self.wfile.write(listed)

        def _begin(self, size: int, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(size))
            self.send_header("Content-Type", kind)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    return Handler
