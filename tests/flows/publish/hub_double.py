"""A double of a data set hub's API, in a thread: repositories, commits that hold their files whole, tags."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.local_server import LocalServer

TOKEN = "a-token"


@dataclass
class Repository:
    """The commits of one data set, oldest first, each its files by path, and its tags."""

    private: bool
    commits: list[dict[str, bytes]] = field(default_factory=lambda: [{}])
    messages: list[str] = field(default_factory=lambda: ["initial commit"])
    tags: dict[str, int] = field(default_factory=dict)


LARGE = (".parquet", ".png")  # stored apart by the hub, by their SHA-256


class HubDouble(LocalServer):
    """The server; a context manager. ``status`` answers every request with an error in its place."""

    def __init__(self) -> None:
        super().__init__()
        self.repositories: dict[str, Repository] = {}
        self.objects: dict[str, bytes] = {}
        self.status: int | None = None

    def answer(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        path = request.path.partition("?")[0]
        self.asked.append(f"{request.command} {path}")
        is_ours = request.headers.get("Authorization") == f"Bearer {TOKEN}"
        if path.startswith("/objects/"):
            self.objects[path.removeprefix("/objects/")] = body
            return _reply(request, 200, {})
        if self.status is not None:
            return _reply(request, self.status, {"error": "not now"})
        if not is_ours:
            return _reply(request, 401, {"error": "Invalid credentials"})
        _reply(request, *self._answer(path, body))

    def _answer(self, path: str, body: bytes) -> tuple[int, Any]:
        if path == "/api/repos/create":
            table = json.loads(body)
            name = f"{table['organization']}/{table['name']}" if table.get("organization") else table["name"]
            is_private = table.get("visibility") == "private" or bool(table.get("private"))
            status = 409 if name in self.repositories else 200
            self.repositories.setdefault(name, Repository(is_private))
            return status, {"url": f"{self.address}/datasets/{name}", "name": name}
        if path == "/api/validate-yaml":
            return 200, {"errors": [], "warnings": []}
        match = re.match(r"/(?:api/)?datasets/([\w-]+/[\w-]+?)(?:\.git/info/lfs/objects/batch|/(\w+)(?:/.*)?)?$", path)
        repository = self.repositories.get(match[1]) if match is not None else None
        if match is None or repository is None:
            return 404, {"error": "Repository not found"}
        if path.endswith("/objects/batch"):
            return 200, {"transfer": "basic", "objects": [self._object(one) for one in json.loads(body)["objects"]]}
        works = {"preupload": _preupload, "commit": self._commit, "tag": _tag, "tree": _tree, "refs": _refs}
        if match[2] in works:
            return works[match[2]](repository, path, body)
        return 200, {"id": match[1], "siblings": [], "sha": "0"}

    def _object(self, one: dict[str, Any]) -> dict[str, Any]:
        upload = {"href": f"{self.address}/objects/{one['oid']}", "header": {}}
        return {**one, "actions": {"upload": upload}}

    def _commit(self, repository: Repository, _: str, body: bytes) -> tuple[int, Any]:
        files = dict(repository.commits[-1])
        for line in body.splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "header":
                repository.messages.append(value["summary"])
            elif entry["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif entry["key"] == "lfsFile":
                content = self.objects[value["oid"]]
                assert hashlib.sha256(content).hexdigest() == value["oid"]
                files[value["path"]] = content
            elif entry["key"] == "deletedFile":
                del files[value["path"]]
        repository.commits.append(files)
        commit = f"{len(repository.commits):040x}"
        url = f"{self.address}/datasets/x/y/commit/{commit}"
        return 200, {"commitOid": commit, "commitUrl": url, "hookOutput": "", "success": True}


def _preupload(_: Repository, __: str, body: bytes) -> tuple[int, Any]:
    files = json.loads(body)["files"]
    modes = [{"path": one["path"], "uploadMode": "lfs" if one["path"].endswith(LARGE) else "regular"} for one in files]
    return 200, {"files": [{**mode, "shouldIgnore": False} for mode in modes]}


def _tag(repository: Repository, _: str, body: bytes) -> tuple[int, Any]:
    tag = json.loads(body)["tag"]
    if tag in repository.tags:
        return 409, {"error": f"Tag {tag} exists already"}
    repository.tags[tag] = len(repository.commits) - 1
    return 200, {}


def _refs(repository: Repository, _: str, __: bytes) -> tuple[int, Any]:
    named = repository.tags.items()
    tags = [{"name": tag, "ref": f"refs/tags/{tag}", "targetCommit": f"{commit + 1:040x}"} for tag, commit in named]
    return 200, {"branches": [], "converts": [], "tags": tags}


def _tree(repository: Repository, path: str, _: bytes) -> tuple[int, Any]:
    revision = path.partition("/tree/")[2].partition("/")[0]
    return 200, [_entry(*one) for one in repository.commits[repository.tags.get(revision, -1)].items()]


def _entry(path: str, data: bytes) -> dict[str, Any]:
    entry = {"type": "file", "path": path, "size": len(data)}
    if not path.endswith(LARGE):
        return {**entry, "oid": hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()}
    lfs = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 134}
    return {**entry, "oid": "0" * 40, "lfs": lfs}


def _reply(request: BaseHTTPRequestHandler, status: int, content: Any) -> None:
    body = json.dumps(content).encode()
    request.send_response(status)
    request.send_header("Content-Type", "application/json")
    request.send_header("Content-Length", str(len(body)))
    request.send_header("Connection", "close")  # the next request has a connection of its own
    request.end_headers()
    request.wfile.write(body)
