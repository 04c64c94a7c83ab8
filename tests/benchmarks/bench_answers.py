"""Accuracy and speed of the answer verifier beside Math-Verify, on one file of labelled pairs, in one run.

    python -m tests.benchmarks.bench_answers [PAIRS.jsonl] [--wrong] [--dump OUT.jsonl] [--mutations N]

The pairs default to ../shared/data/answers/equivalence.jsonl (or GOLDILOCKS_DATA). Rows: gold, pred, equal, and
perhaps kind. Each verifier runs in a process of its own, one core, no limits per pair; they take turns on chunks of
the file so that a busy machine slows both alike. Math-Verify's time is what its ``parse`` and ``verify`` take, its
own timeouts included. ``--wrong`` lists our disagreements.

Behind the pairs come changes and rewritings of real references (`tests/curation/verify/answers`), N of each: a change
that a verifier accepts is a false positive where an oracle does not know it for an identity.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("GOLDILOCKS_DATA") or ROOT.parent / "shared" / "data")
TRUSTED = ("unit_test", "hardverify", "scoring_example", "github_issue")
CHUNK = 100


def ours(gold: str, pred: str) -> bool:
    from curation.records import Outcome
    from curation.verify import answers

    return answers.compare_texts(gold, pred).outcome is Outcome.CORRECT


def theirs(gold: str, pred: str) -> bool:
    from math_verify import parse, verify

    return bool(verify(parse(delimited(gold)), parse(delimited(pred))))


def delimited(text: str) -> str:
    """Return an answer with LaTeX delimiters where it has none: Math-Verify looks for LaTeX between delimiters."""
    bare = "$" not in text and "boxed" not in text and "\\(" not in text and "\\[" not in text and len(text) < 200
    return f"${text}$" if bare else text


def drawn_pairs(count: int) -> list[dict[str, Any]]:
    """Return near misses and rewritings of real references as rows, ``count`` of each, drawn from a seed."""
    from tests.curation.verify.answers.corpus import real_references
    from tests.curation.verify.answers.mutations import mutations
    from tests.curation.verify.answers.rewritings import rewritings

    english = [text for text, lang in real_references() if lang == "en"]
    near = [(one.reference, one.changed) for text in english for one in mutations(text, seed=7)]
    equal = [(text, other) for text in english for other in rewritings(text).values()]
    dice = random.Random(7)
    return [
        {"gold": gold, "pred": pred, "equal": kind == "rewritings", "kind": kind}
        for kind, pairs in (("mutations", near), ("rewritings", equal))
        for gold, pred in dice.sample(pairs, min(count, len(pairs)))
    ]


def drop_identities(rows: list[dict[str, Any]], servers: dict[str, Server]) -> list[dict[str, Any]]:
    """Call a mutation that some verifier accepts equal where the oracle knows it for an identity."""
    from tests.curation.verify.answers.oracle import is_same_answer

    for position, row in enumerate(rows):
        accepted = any(server.verdicts[position] for server in servers.values())
        if row["kind"] == "mutations" and accepted and is_same_answer(row["gold"], row["pred"]) is not None:
            row["equal"] = True
    return rows


def serve(name: str) -> None:
    """Run a verifier's process: chunks of pairs in, (verdicts, seconds of each) out."""
    verify = {"ours": ours, "theirs": theirs}[name]
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    verify("x+1", "1+x")
    for line in sys.stdin:
        pairs = json.loads(line)
        verdicts, times = [], []
        for gold, pred in pairs:
            start = time.perf_counter()
            verdicts.append(verify(gold, pred))
            times.append(time.perf_counter() - start)
        out.write(json.dumps([verdicts, times]) + "\n")
        out.flush()


class Server:
    """One verifier's process."""

    def __init__(self, name: str) -> None:
        command = [sys.executable, "-m", "tests.benchmarks.bench_answers", "--serve", name]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.times: list[float] = []
        self.verdicts: list[bool] = []

    def judge(self, pairs: list[tuple[str, str]]) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(pairs) + "\n")
        self.process.stdin.flush()
        verdicts, times = json.loads(self.process.stdout.readline())
        self.verdicts += verdicts
        self.times += times


def report(rows: list[dict[str, Any]], servers: dict[str, Server]) -> None:
    kinds: dict[str, list[int]] = defaultdict(list)
    for position, row in enumerate(rows):
        kinds[row.get("kind", "all")].append(position)
        if row.get("kind") in TRUSTED:
            kinds["= trusted kinds"].append(position)
    print(f"{'kind':28} {'pairs':>6}   {'ours':>7} {'FP':>4} {'FN':>4}   {'Math-Verify':>11} {'FP':>4} {'FN':>4}")
    for kind, positions in sorted(kinds.items()):
        cells = []
        for server in servers.values():
            pairs = [(server.verdicts[at], rows[at]["equal"]) for at in positions]
            right = 100 * sum(first == two for first, two in pairs) / len(pairs)
            cells.append(
                (right, sum(first and not two for first, two in pairs), sum(two and not first for first, two in pairs))
            )
        (a, b, c), (d, e, f) = cells
        print(f"{kind:28} {len(positions):6}   {a:6.1f}% {b:4} {c:4}   {d:10.1f}% {e:4} {f:4}")
    own, other = (server.times for server in servers.values())
    print(
        f"pairs/s: ours {len(rows) / sum(own):.0f}, Math-Verify {len(rows) / sum(other):.0f}, "
        f"ratio {sum(other) / sum(own):.1f} in the mean, {median(other) / median(own):.1f} in the median"
    )


def judge_all(rows: list[dict[str, Any]]) -> dict[str, Server]:
    """Return both verifiers' processes with their verdicts on all rows, judged in turns."""
    servers = {"ours": Server("ours"), "theirs": Server("theirs")}
    for start in range(0, len(rows), CHUNK):
        for server in servers.values():
            server.judge([(row["gold"], row["pred"]) for row in rows[start : start + CHUNK]])
    return servers


def plain_speed(count: int = 100_000) -> float:
    """Return pairs per second of the quick tier on integers and fractions."""
    from curation.verify import answers

    dice = random.Random(0)
    numbers = [str(dice.randint(-10_000, 10_000)) for _ in range(count)]
    fractions = [f"{dice.randint(1, 99)}/{dice.randint(1, 99)}" for _ in range(count)]
    pairs = [*zip(numbers, reversed(numbers), strict=True), *zip(fractions, reversed(fractions), strict=True)]
    start = time.perf_counter()
    for reference, two in pairs:
        answers.compare(reference, two)
    return len(pairs) / (time.perf_counter() - start)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("pairs", nargs="?", type=Path, default=DATA / "answers" / "equivalence.jsonl")
    arguments.add_argument("--wrong", action="store_true", help="list our disagreements")
    arguments.add_argument("--dump", type=Path, help="write every row with both verdicts")
    arguments.add_argument("--mutations", type=int, default=500, metavar="N", help="0 leaves them out")
    arguments.add_argument("--serve", help=argparse.SUPPRESS)
    parsed = arguments.parse_args()
    if parsed.serve:
        serve(parsed.serve)
        return
    rows = [json.loads(line) for line in parsed.pairs.read_text(encoding="utf-8").split("\n") if line]
    rows = [{**row, "pred": row.get("pred") or ""} for row in rows]
    servers = judge_all(rows)
    report(rows, servers)
    if parsed.mutations and (DATA / "math").exists():
        drawn = drawn_pairs(parsed.mutations)
        drawn_servers = judge_all(drawn)
        report(drop_identities(drawn, drawn_servers), drawn_servers)
    print(f"integers and fractions: {plain_speed():.0f} pairs/s")
    for row, own_verdict, two in zip(rows, servers["ours"].verdicts, servers["theirs"].verdicts, strict=True):
        if parsed.wrong and own_verdict != row["equal"]:
            print(f"{row.get('kind')}: equal={row['equal']}: {row['gold'][-100:]!r} | {row['pred'][-100:]!r}")
        row.update(ours=own_verdict, math_verify=two)
    if parsed.dump:
        parsed.dump.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
