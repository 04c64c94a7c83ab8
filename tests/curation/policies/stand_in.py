"""A small OpenAI-compatible server, run as a process of its own: it does what its plan says, request by request.

    python stand_in.py JOURNAL MODEL[:CONTEXT] PLAN KEY [SAYS]

The plan is a list of words, one a request, then `ok`: `ok`, `slow`, a status such as `429`, `hang`, `drop` (the
connection breaks), `die`, `long` (the prompt is too long), `garbage`. Each event is a line of the journal. The answer
is the seed and the prompt, or the text of the first list in the JSON file SAYS whose words are all in the prompt.
Instead of a text: an object, the whole message; a number, a status; HANG, no answer; FILTERED, a content filter.
"""

import itertools
import json
import os
import select
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

JOURNAL, MODEL, PLAN, KEY = sys.argv[1:5]
SAYS = Path(sys.argv[5]) if len(sys.argv) > 5 else None
words = itertools.chain(PLAN.split(), itertools.repeat("ok"))
lock = threading.Lock()


def note(event: str, seed: int) -> None:
    with lock, open(JOURNAL, "a") as journal:
        journal.write(json.dumps({"event": event, "seed": seed}) + "\n")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        return

    def reply(self, status: int, content: Any, **headers: str) -> None:
        body = (content if isinstance(content, str) else json.dumps(content)).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def allowed(self) -> bool:
        if KEY and self.headers["Authorization"] != f"Bearer {KEY}":
            self.reply(401, {"error": {"message": "wrong key"}})
            return False
        return True

    def do_GET(self) -> None:
        if self.allowed():
            name, _, context = MODEL.partition(":")
            self.reply(200, {"data": [{"id": name, **({"max_model_len": int(context)} if context else {})}]})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.allowed():
            return
        with lock:
            word = next(words)
        note("asked", asked["seed"])
        if word == "slow":
            time.sleep(0.05)
        if word == "hang" or text_for(asked) == "HANG":
            select.select([self.connection], [], [])  # readable once the client has gone
            note("closed", asked["seed"])
            self.close_connection = True
        elif word == "drop":
            self.close_connection = True
        elif word == "die":
            os._exit(1)
        elif word == "garbage":
            self.reply(200, "<html>")
        elif word == "long":
            self.reply(400, {"error": {"message": "This model's maximum context length is 8 tokens."}})
        elif word.isdigit():
            self.reply(int(word), {"error": {"message": "not now"}}, Retry_After="0")
        elif isinstance(text := text_for(asked), int):
            self.reply(text, {"error": {"message": "the prompt is poisoned"}}, Retry_After="0")
        else:
            note("answered", asked["seed"])
            self.reply(200, completion(text))


def text_for(asked: dict[str, Any]) -> Any:
    prompt = asked["messages"][-1]["content"]
    says = json.loads(SAYS.read_text(encoding="utf-8")) if SAYS is not None else []
    return next((said for *words, said in says if all(word in prompt for word in words)), f"{asked['seed']} {prompt}")


def completion(text: Any) -> dict[str, Any]:
    message = text if isinstance(text, dict) else {"content": text, "reasoning_content": None}
    finish = "content_filter" if text == "FILTERED" else "stop"
    choice = {"finish_reason": finish, "index": 0, "message": {"role": "assistant", **message}}
    return {"choices": [choice], "usage": {"completion_tokens": len(text), "prompt_tokens": 3}}


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


server = Server(("127.0.0.1", int(os.environ.get("PORT", "0"))), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
