"""Write down prompts whose answers are missing, and store what a model answered.

    python -m tests.gates.ask NAME FOLDER                  writes FOLDER/NAME-001.txt … of prompts without an answer
    python -m tests.gates.ask NAME FOLDER --take WHO       stores FOLDER/NAME-001.answers.txt … in answers/NAME.jsonl

A file holds the system prompt and its example turns once, then up to `--batch` user messages, each after a line
`### HASH`; answers come back in the same form. The order is that of the hashes, so it gives nothing away. `--take` also
removes the answers to prompts that no room asks any more.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import sys
from pathlib import Path

from curation.prompts import Prompt
from curation.records import PromptRequest
from tests.gates.__main__ import rooms
from tests.gates.base import SkippedError
from tests.gates.stored import FOLDER, PROMPTS, answers, prompt_hash, rendered

HEAD = """\
Below is the system prompt of a program, with example turns if it has any, then {count} messages that it sends one \
at a time, each after a line \
'### KEY'. They are independent: reply to each as if it were the only one, from its own text alone. Read no other \
file, look nothing up, run no code. Write to {answers}: for each message, in order, the line '### KEY' and then your \
reply in the form that the system prompt asks for, and nothing else.

The system prompt:

{head}

The messages:
"""
KEY = re.compile(r"^### ([0-9a-f]{16})[ \t]*$", re.MULTILINE)


def write_batches(name: str, asked: list[tuple[Prompt, PromptRequest]], folder: Path, batch: int) -> int:
    """Write prompts without an answer into files of `batch` messages; return how many there are."""
    known = answers(name)
    waiting = {prompt_hash(rendered(*one)): one for one in asked}
    waiting = {key: waiting[key] for key in sorted(waiting) if key not in known}
    by_head: dict[str, list[str]] = {}
    for key, (prompt, request) in waiting.items():
        *head, last = prompt.messages(request)
        before = "\n\n".join(
            one["content"] if one["role"] == "system" else f"{one['role']}: {one['content']}" for one in head
        )
        by_head.setdefault(before, []).append(f"### {key}\n{last['content']}\n")
    folder.mkdir(parents=True, exist_ok=True)
    number = 0
    for before, messages in by_head.items():
        for start in range(0, len(messages), batch):
            number += 1
            part, file = messages[start : start + batch], folder / f"{name}-{number:03}.txt"
            head = HEAD.format(count=len(part), answers=file.with_suffix(".answers.txt").absolute(), head=before)
            file.write_text(head + "\n" + "\n".join(part), encoding="utf-8", errors="surrogatepass")
    return len(waiting)


def take(name: str, asked: list[tuple[Prompt, PromptRequest]], folder: Path, model: str) -> tuple[int, int]:
    """Store the answers of a folder; return how many were new, and how many prompts still have none."""
    wanted = {prompt_hash(rendered(*one)) for one in asked}
    file = FOLDER / f"{name}.jsonl"
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    old = [json.loads(line) for line in text.split("\n") if line]
    rows = [row for row in old if row["prompt"] in wanted]
    known, date, new = {row["prompt"] for row in rows}, datetime.date.today().isoformat(), 0
    for path in sorted(folder.glob(f"{name}-*.answers.txt")):
        pieces = KEY.split(path.read_text(encoding="utf-8"))[1:]
        for key, text in zip(pieces[::2], pieces[1::2], strict=True):
            if key in wanted and key not in known and text.strip():
                rows.append({"prompt": key, "text": text.strip("\n"), "model": model, "date": date})
                known.add(key)
                new += 1
    rows.sort(key=lambda row: row["prompt"])
    FOLDER.mkdir(exist_ok=True)
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return new, len(wanted - known)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.gates.ask", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--take", metavar="WHO", help="the model that answered")
    parser.add_argument("--batch", type=int, default=60)
    parsed = parser.parse_args()
    rooms()
    if parsed.name not in PROMPTS:
        sys.exit(f"{parsed.name}: no such prompts; there are {', '.join(PROMPTS)}")
    try:
        asked = PROMPTS[parsed.name]()
    except SkippedError as why:
        sys.exit(f"{parsed.name}: {why}")
    if parsed.take:
        new, missing = take(parsed.name, asked, parsed.folder, parsed.take)
        print(f"{new:,} new answers stored, {missing:,} prompts still without one")
    else:
        print(f"{write_batches(parsed.name, asked, parsed.folder, parsed.batch):,} prompts written to {parsed.folder}")


if __name__ == "__main__":
    main()
