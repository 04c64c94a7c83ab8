"""An object store on this machine: moto's S3, in a thread, which can be told to end a process in the middle of a write.

It and s3fs are no dependency of this package; without them the tests that need it are skipped and say so.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import Request, urlopen

import pytest

BUCKET = "goldilocks"
WHY = "no object store: `pip install 'moto[server]' s3fs` in an environment of your own"


class ObjectStore:
    """The store. ``writes`` are the keys that were put so far.

    ``victim`` is killed when the put of number ``at`` begins, and that put is not answered.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.writes: list[str] = []
        self.victim: Callable[[], int | None] = lambda: None
        self.at = -1

    def environment(self) -> dict[str, str]:
        return {
            "FSSPEC_S3_ENDPOINT_URL": self.address,
            "AWS_ACCESS_KEY_ID": "nobody",
            "AWS_SECRET_ACCESS_KEY": "nothing",
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def file_system(self) -> Any:
        """Return fsspec's file system of the store, which remembers nothing."""
        import s3fs

        options = {"key": "nobody", "secret": "nothing", "endpoint_url": self.address}
        return s3fs.S3FileSystem(**options, skip_instance_cache=True, use_listings_cache=False)

    def texts(self, prefix: str) -> dict[str, bytes]:
        """Return what lies under a prefix, by the keys behind it."""
        fs = self.file_system()
        root = f"{BUCKET}/{prefix}"
        return {path.removeprefix(f"{root}/"): fs.cat_file(path) for path in fs.find(root)}

    def _watched(self, app: Any) -> Any:
        def call(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
            if environ["REQUEST_METHOD"] == "PUT" and "/" in environ["PATH_INFO"].strip("/"):
                process = self.victim()
                if process is not None and len(self.writes) == self.at:
                    environ["wsgi.input"].read(1)
                    os.kill(process, signal.SIGKILL)
                    start("503 Service Unavailable", [])
                    return []
                self.writes.append(environ["PATH_INFO"])
            answered: Iterable[bytes] = app(environ, start)
            return answered

        return call


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Start a store with one bucket; skip the test where there is none to be had."""
    pytest.importorskip("s3fs", reason=WHY)
    pytest.importorskip("moto.server", reason=WHY)
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    store = ObjectStore("")
    server = make_server("127.0.0.1", 0, store._watched(DomainDispatcherApplication(create_backend_app)), threaded=True)
    store.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        urlopen(Request(f"{store.address}/moto-api/reset", method="POST")).close()  # what another test left in moto
        store.file_system().mkdir(BUCKET)
        yield store
    finally:
        server.shutdown()
        thread.join()
