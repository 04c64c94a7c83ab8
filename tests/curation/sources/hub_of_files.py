"""A small double of a data set hub that is read from: commits with their files, branches, gated and script sets.

It speaks what `datasets` and `huggingface_hub` ask when a set is loaded: its description, its tree, its files.
"""

import hashlib
import json
import re
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.local_server import LocalServer

PATH = re.compile(r"/(?:api/)?datasets/([\w.-]+/[\w.-]+)(?:/(revision|tree|paths-info|resolve)/(.*))?")


@dataclass
class HubSet:
    """A data set: its files by commit, and its branches."""

    commits: dict[str, dict[str, bytes]]
    branches: dict[str, str] = field(default_factory=dict)
    gated: bool = False

    def commit_of(self, revision: str) -> str | None:
        """Return the commit of a branch or a commit's hash; None where there is none."""
        return revision if revision in self.commits else self.branches.get(revision)


class HubOfFiles(LocalServer):
    """The server; a context manager. ``asked`` holds every request, oldest first."""

    def __init__(self, sets: dict[str, HubSet]) -> None:
        super().__init__()
        self.sets = sets

    def answer(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        path = unquote(urlsplit(request.path).path)
        self.asked.append(f"{request.command} {path}")
        match = PATH.fullmatch(path)
        found = self.sets.get(match[1]) if match is not None else None
        if match is None or found is None:
            return _refuse(request, 404, "RepoNotFound")
        work, rest = match[2] or "revision", match[3] or "main"
        name = next((one for one in [*found.branches, *found.commits] if rest == one or rest.startswith(f"{one}/")), "")
        commit = found.commit_of(name)
        if commit is None:
            return _refuse(request, 404, "RevisionNotFound")
        files, inside = found.commits[commit], rest[len(name) + 1 :]
        if work == "revision":
            told = {"id": match[1], "sha": commit, "private": False, "gated": found.gated, "tags": []}
            return _reply(request, {**told, "siblings": [{"rfilename": one} for one in files]})
        if found.gated:
            return _refuse(request, 403, "GatedRepo")
        if work == "paths-info":
            asked = parse_qs(body.decode()).get("paths") or json.loads(body or b"{}").get("paths", [])
            return _reply(request, [one for path in asked for one in _entries(files, path) if one["path"] == path])
        if work == "tree":
            return _reply(request, [one for one in _entries(files, inside) if one["path"] != inside])
        if inside not in files:
            return _refuse(request, 404, "EntryNotFound", commit)
        content = files[inside]
        _send(request, 200, content, {"X-Repo-Commit": commit, "ETag": f'"{hashlib.sha1(content).hexdigest()}"'})


def _entries(files: dict[str, bytes], inside: str) -> list[dict[str, Any]]:
    """Return the files and folders at and below a path, as the hub's API lists them."""
    folders = {"/".join(path.split("/")[:depth]) for path in files for depth in range(1, path.count("/") + 1)}
    listed = [{"type": "directory", "path": path, "oid": "0" * 40, "size": 0} for path in sorted(folders)]
    for path, content in files.items():
        oid = hashlib.sha1(content).hexdigest()
        listed.append({"type": "file", "path": path, "oid": oid, "size": len(content)})
    return [one for one in listed if not inside or f"{one['path']}/".startswith(f"{inside}/")]


def _reply(request: BaseHTTPRequestHandler, told: Any) -> None:
    _send(request, 200, json.dumps(told).encode(), {"Content-Type": "application/json"})


def _refuse(request: BaseHTTPRequestHandler, status: int, code: str, commit: str = "") -> None:
    _send(request, status, b'{"error": "no"}', {"X-Error-Code": code, "X-Error-Message": code, "X-Repo-Commit": commit})


def _send(request: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str]) -> None:
    request.send_response(status)
    for name, value in headers.items():
        request.send_header(name, value)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    if request.command != "HEAD":
        request.wfile.write(body)
