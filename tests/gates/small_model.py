"""Ask a model every question that is answered by a vote, on rows whose answer is known.

    python -m tests.gates.small_model                             SmolLM2-135M-Instruct on this machine
    python -m tests.gates.small_model --model models/a-7b         a folder with weights, in vLLM
    python -m tests.gates.small_model --model FILE.toml[:NAME]    a table [models.NAME]: an endpoint, for example

`--prompts N` per question (40), half of them of either answer. Printed per question: how many answers were cut off, how
many can be read, how many of these are right, the words that they are, and how they agree with the stored answers of a
strong chat model where there are some; then the beginning of the first answer that cannot be read. One answer per
prompt, at temperature 0 for a folder.

Known answers: labels that a person or the rows' source gave (`doubtful_rows`: tests/benchmarks/filter_labels.tsv;
`premises`: UMWP and MiP; `overlaps`: rephrased rows with their own and with other originals; `doubtful_verdicts`: the
verifier's drawn pairs).
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from curation.questions import QUESTIONS
from curation.questions.doubtful_rows import usability_request
from curation.questions.doubtful_verdicts import comparison_request
from curation.questions.overlaps import overlap_request
from curation.questions.votes import UNREADABLE, Vote
from curation.records import Completion, Domain, PromptRequest, RequestRefused, problem_id
from flows.run.policies import load_model, parse_model
from flows.run.policy_session import ModelSession, keep_open, model_session
from flows.stages.question import registered
from tests.benchmarks import bench_filters
from tests.benchmarks.labelled_rows import KEEP
from tests.gates.answer_pairs import drawn_pairs
from tests.gates.base import SkippedError, shared, shared_rows
from tests.gates.stored import answers, prompt_hash, rendered

LONGEST = 4000
"""Characters of a prompt: a small model's window and this machine's time are short."""

MAX_TOKENS = 256

Known = tuple[PromptRequest, frozenset[str]]
"""A prompt, and the words that are right."""


def doubtful_rows(vote: Vote) -> Iterator[Known]:
    """Yield labelled rows of the shared data, whose label is that they can be used or why not."""
    rows = bench_filters.labelled(bench_filters.load(shared())).drop_nulls(["statement", "answer"])
    for statement, answer, lang, label in rows.select("statement", "answer", "lang", "label").rows():
        yield usability_request(statement, answer, lang), _words(vote, label != KEEP)


def premises(vote: Vote) -> Iterator[Known]:
    """Yield problems with all premises and such that lack one."""
    for name in ("umwp", "mip_missing_premise"):
        for row in shared_rows("math", f"{name}.jsonl"):
            request = PromptRequest(problem_id(row["problem"]), row["problem"], Domain.MATH, row["lang"])
            yield request, _words(vote, row["kind"] == "unanswerable")


def overlaps(vote: Vote) -> Iterator[Known]:
    """Yield rephrased rows next to their original, and next to another one that the product would ask about.

    The latter are found by their stored answers: scoring all pairs takes minutes.
    """
    asked = answers(vote.name)
    for name in ("humaneval_rephrased", "gsm8k_rephrased"):
        rows = shared_rows("contamination", f"{name}.jsonl")
        originals = dict.fromkeys(row["original"] for row in rows)
        for row in rows:
            for original in originals:
                request, same = overlap_request(row["rephrased"], original, "en"), row["original"] == original
                if same or prompt_hash(rendered(vote.prompt, request)) in asked:
                    yield request, _words(vote, same)


def doubtful_verdicts(_vote: Vote) -> Iterator[Known]:
    """Yield references of real problems with a rewriting that is the same, or with a change that is wrong."""
    pairs = [pair for part in drawn_pairs() for pair in part]
    for name in ("odyssey_math", "hardmath_mini", "olymmath"):
        for row in shared_rows("math", f"{name}.jsonl"):
            if row["lang"] == "en" and row["kind"] == "open":
                for pair in pairs:
                    if pair.reference == row["answer"]:
                        request = comparison_request(row["problem"], "en", pair.reference, pair.answer)
                        yield request, frozenset({"same" if pair.equal else "different"})


KNOWN: dict[str, Callable[[Vote], Iterator[Known]]] = {
    "doubtful_rows": doubtful_rows,
    "overlaps": overlaps,
    "premises": premises,
    "doubtful_verdicts": doubtful_verdicts,
}


def _words(vote: Vote, has_fault: bool) -> frozenset[str]:
    return frozenset(vote.words[1:] if has_fault else vote.words[:1])


def drawn(vote: Vote, count: int, seed: int = 7) -> list[Known]:
    """Return different prompts with known answers, half of each kind of answer."""
    known = {request.id: (request, words) for request, words in KNOWN[vote.name](vote)}
    short = [one for one in known.values() if len(rendered(vote.prompt, one[0])) <= LONGEST]
    dice = random.Random(f"{vote.name}/{seed}")
    kinds = sorted({words for _, words in short}, key=sorted)
    return [one for kind in kinds for one in dice.sample([x for x in short if x[1] == kind], count // len(kinds))]


@dataclass(frozen=True, slots=True)
class Line:
    """What a model answered to one question."""

    name: str
    asked: int
    cut_off: int
    words: Counter[str]
    right: int
    strong: tuple[int, int]
    """Of the read answers to prompts with a stored answer, how many are the same word, and of how many."""
    unread: str
    """The first answer that cannot be read."""

    def row(self) -> str:
        """Return the line of the table."""
        readable = self.words.total() - self.words[UNREADABLE]
        words = ", ".join(f"{word} {count}" for word, count in self.words.most_common() if word != UNREADABLE)
        strong = f"{self.strong[0]} of {self.strong[1]}" if self.strong[1] else "none stored"
        counts = f"{self.asked} | {self.cut_off} | {readable} | {self.right} of {readable}"
        return f"| `{self.name}` | {counts} | {words or 'none'} | {strong} |"


def ask(vote: Vote, known: Sequence[Known], session: ModelSession) -> Line:
    """Return what a model answers to prompts with known answers."""

    async def all_answers() -> list[Completion | None]:
        room = asyncio.Semaphore(session.policy.in_flight)

        async def answer(request: PromptRequest) -> Completion | None:
            async with room:
                try:
                    return await session.policy.answer(request, 0)
                except RequestRefused:
                    return None

        return list(await asyncio.gather(*(answer(request) for request, _ in known)))

    session.open()
    completions = session.run(all_answers())
    answered = [(made, *one) for made, one in zip(completions, known, strict=True) if made is not None]
    given = [(vote.read(made.text), request, words) for made, request, words in answered]
    unread = [made.text or "" for made, _, _ in answered if not vote.is_readable(made.text)]
    stored = {key: vote.read(some[0]) for key, some in answers(vote.name).items()}
    pairs = [
        (word, stored[key])
        for word, request, _ in given
        if word != UNREADABLE and (key := prompt_hash(rendered(vote.prompt, request))) in stored
    ]
    return Line(
        vote.name,
        len(known),
        sum(made.finish == "length" for made, _, _ in answered),
        Counter(word for word, _, _ in given),
        sum(word in words for word, _, words in given),
        (sum(one == other for one, other in pairs), len(pairs)),
        " ".join(unread[0].split()) if unread else "",
    )


def main() -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", metavar="FOLDER|FILE.toml[:NAME]")
    parser.add_argument("--prompts", type=int, default=40)
    parsed = parser.parse_args()
    if parsed.model and not Path(parsed.model).is_dir():
        settings, folder = load_model(parsed.model, "--model")
    else:
        from tests.real_model.smollm import smollm_folder

        where = Path(parsed.model) if parsed.model else smollm_folder()
        decoding = {"temperature": 0.0, "max_tokens": MAX_TOKENS}
        table = {"kind": "vllm", "model": str(where.absolute()), "thinking": "none", "max_model_len": 3072}
        settings, folder = parse_model({**table, "decoding": decoding}, "--model"), Path()
    print("| question | prompts | cut off | readable | right | words | as the strong model |")
    print("|---|---|---|---|---|---|---|", flush=True)
    lines = []
    votes = [question for name in QUESTIONS if isinstance(question := registered(name), Vote)]
    with keep_open():
        for vote in votes:
            try:
                known = drawn(vote, parsed.prompts)
            except SkippedError as why:
                print(f"{vote.name}: {why}")
                continue
            with model_session(settings, folder, vote.prompt) as session:
                lines.append(ask(vote, known, session))
            print(lines[-1].row(), flush=True)
    for line in lines:
        print(f"{line.name}: {line.unread[:200]!r}")


if __name__ == "__main__":
    main()
