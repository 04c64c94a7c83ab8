"""A stand-in server: a script in a process of its own that prints its port and keeps a journal of events."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


class ServerProcess:
    """The process, at ``port``, and its journal."""

    def __init__(self, script: Path, journal: Path, *arguments: str, port: int = 0) -> None:
        self.script, self.journal, self.port = script, journal, port
        self.start(*arguments)

    def start(self, *arguments: str) -> None:
        """Start the process, again at the port that it had before."""
        command = [sys.executable, "-I", str(self.script), str(self.journal), *arguments]
        environment = {**os.environ, "PORT": str(self.port)}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())
        self.url = f"http://127.0.0.1:{self.port}"

    def events(self, name: str) -> list[dict[str, Any]]:
        lines = self.journal.read_text().splitlines() if self.journal.exists() else []
        return [line for line in map(json.loads, lines) if line["event"] == name]

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
