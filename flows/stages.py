"""The stages of the math line as bare functions: what is read, which room decides, what is written.

Each takes the run and the stages before it, and returns a `Done`. Nothing here decides anything about a problem.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial

import polars as pl

from curation import attempts, difficulty, duplicates, sources, statements
from curation.choices.resolving import named_letter
from curation.policies.recorded import Recorded
from curation.records import DROPPED, VERDICT, AttemptKey, Domain, DropReason, Outcome, Prompted, StoreError
from curation.store import Shard, Stage, read_shard, read_table, write_aside
from curation.verify.judge import JudgeTask, MathJudge, Response
from flows.run_folder import Done, Run, difficulty_stage, drive, inputs, shard_counts

Work = Callable[[], Shard]

KEY = "key.json"
"""Beside the manifest of an attempts stage: what its attempts are filed under."""


def open_judge(run: Run) -> MathJudge:
    """The math verifier as the recipe wants it; use it as a context manager."""
    settings = run.recipe.verify
    return MathJudge(run.recipe.workers, settings.limit_s, settings.memory_mb, settings.engine)


def verifier_version(run: Run) -> str:
    """Name and version of the verifier that the recipe asks for."""
    with open_judge(run) as judge:
        return judge.version


def read_sources(run: Run) -> Done:
    """Rows of all sources as Problems."""
    recipe = run.recipe
    digests = {source.name: sources.source_digest(source, run.recipe_folder) for source in recipe.sources}
    settings = "-".join([*(source.digest() for source in recipe.sources), str(recipe.shard_rows)])
    stage = Stage(run.where("sources"), "sources", sources.VERSION, settings, digests)

    def shards() -> Iterator[tuple[int, Work]]:
        for source in recipe.sources:
            for frame in sources.read_source(source, run.recipe_folder, recipe.shard_rows):
                yield frame.height, partial(_all_kept, frame)

    return drive(stage, shards(), total=None)


def filter_statements(run: Run, before: Done) -> Done:
    """Format filter; multiple choice becomes an open question."""
    settings = run.recipe.statements

    def work(index: int) -> Shard:
        problems = read_shard(before.folder, "kept", index)
        parts = statements.filter_statements(problems, settings)
        return Shard(problems.height, {"kept": parts.kept, "dropped": parts.dropped})

    stage = Stage(run.where("statements"), "statements", statements.VERSION, settings.digest(), inputs(before))
    return _shard_by_shard(stage, before, work)


def check_references(run: Run, before: Done) -> Done:
    """Every reference must be one that the verifier can judge against, before any attempt is made."""
    settings = run.recipe.verify.digest()
    with open_judge(run) as judge:

        def work(index: int) -> Shard:
            problems = read_shard(before.folder, "kept", index)
            checks = list(judge.check(problems.select("answer", "lang").iter_rows()))
            reasons = [
                None if check.ok else DropReason.VERIFIER_FAILED if check.failed else DropReason.UNVERIFIABLE_ANSWER
                for check in checks
            ]
            evidence = [f"{check.why}: {answer}" for check, answer in zip(checks, problems["answer"], strict=True)]
            kept, dropped = _split(problems, "references", reasons, evidence)
            return Shard(problems.height, {"kept": kept, "dropped": dropped})

        stage = Stage(run.where("references"), "references", judge.version, settings, inputs(before))
        return _shard_by_shard(stage, before, work)


def find_duplicates(run: Run, before: Done) -> Done:
    """The same problem twice: the first stays; copies with different references all go."""
    settings = f"{verifier_version(run)} {run.recipe.verify.digest()}"  # it says whether two references are equal
    stage = Stage(run.where("duplicates"), "duplicates", duplicates.VERSION, settings, inputs(before))
    if (manifest := stage.manifest()) is not None:
        return Done(stage.name, stage.folder, manifest, reused=True)
    again = duplicates.repeats(read_table(before.folder, "kept", ["id", "source", "row", "answer"]))
    conflicts = _conflicts(run, again)

    def work(index: int) -> Shard:
        problems = read_shard(before.folder, "kept", index)
        kept, dropped = duplicates.drop_repeats(problems, again, conflicts)
        return Shard(problems.height, {"kept": kept, "dropped": dropped})

    return _shard_by_shard(stage, before, work)


def _conflicts(run: Run, again: duplicates.Repeats) -> dict[str, str]:
    pairs = again.pairs()
    if not pairs:
        return {}
    with open_judge(run) as judge:
        outcomes = list(judge.same((reference, other) for _, reference, other in pairs))
    return {
        name: "references: " + " | ".join(again.references[name])
        for (name, _, _), outcome in zip(pairs, outcomes, strict=True)
        if outcome is not Outcome.CORRECT
    }


def make_attempts(run: Run, part: str, problems: Done) -> Done:
    """Have the stage's policy answer every problem; attempts that are in the store are not asked for again."""
    settings = difficulty_stage(run.recipe, part)
    policy = Recorded(settings.policy, run.recipe_folder)
    store = attempts.AttemptStore(run.folder / "attempts", policy.key, policy.about)
    wanted = settings.band.attempts

    def work(index: int) -> Shard:
        frame = read_shard(problems.folder, "kept", index).select("id", "statement", "domain", "lang")
        lacking = store.missing(frame["id"], wanted)
        asked = [
            (Prompted(name, statement, Domain(domain), lang), lacking[name])
            for name, statement, domain, lang in frame.iter_rows()
            if name in lacking
        ]
        for batch in policy.attempt(asked):
            store.append(batch)
        held = store.read(frame["id"].to_list(), ["problem", "index"]).filter(pl.col("index") < wanted)
        counts = held.group_by("problem", maintain_order=True).len("attempts")
        return Shard(frame.height, {"counts": counts}, kept_rows=frame.height, notes={"attempts": held.height})

    key = asdict(policy.key)
    settings_text = " ".join([*key.values(), str(wanted)])
    stage = Stage(run.where(f"{part}.attempts"), f"{part}.attempts", "attempts@1", settings_text, inputs(problems))
    if store.height < stage.noted("attempts"):  # parts of the store were removed: what is missing is made again
        stage.discard()
    done = _shard_by_shard(stage, problems, work)
    write_aside(done.folder / KEY, json.dumps(key) + "\n")
    return done


def made_attempts(run: Run, made: Done) -> attempts.AttemptStore:
    """The store that an attempts stage filled, by the key that the stage kept; the policy itself is not needed."""
    key = AttemptKey(**json.loads((made.folder / KEY).read_text(encoding="utf-8")))
    store = attempts.AttemptStore(run.folder / "attempts", key, create=False)
    if store.height < made.manifest.notes["attempts"]:
        raise StoreError(
            f"{store.folder} holds {store.height} attempts, {made.manifest.notes['attempts']} were made; "
            "run the recipe again and the missing ones are made again."
        )
    return store


def judge_attempts(run: Run, part: str, problems: Done, made: Done) -> Done:
    """Verdicts on all attempts of the stage, and which of a problem's answers are the same."""
    settings = difficulty_stage(run.recipe, part)
    store = made_attempts(run, made)
    with open_judge(run) as judge:

        def work(index: int) -> Shard:
            frame = read_shard(problems.folder, "kept", index).select("id", "answer", "lang", "raw_answer")
            held = store.read(frame["id"].to_list()).filter(pl.col("index") < settings.band.attempts)
            verdicts = _judge(judge, frame, held)
            labelled, against = difficulty.against_labels(verdicts, held)
            return Shard(
                frame.height,
                {"verdicts": verdicts, "against_labels": against},
                kept_rows=frame.height,
                notes={"attempts": verdicts.height, "labelled": labelled, "against_labels": against.height},
            )

        name = f"{part}.verdicts"
        stage = Stage(
            run.where(name, judge.version), name, judge.version, run.recipe.verify.digest(), inputs(problems, made)
        )
        return _shard_by_shard(stage, problems, work)


def decide(run: Run, part: str, problems: Done, verdicts: Done) -> Done:
    """Pass rates, and what they decide."""
    settings = difficulty_stage(run.recipe, part)

    def work(index: int) -> Shard:
        frame = read_shard(problems.folder, "kept", index)
        judged = read_shard(verdicts.folder, "verdicts", index)
        rates = difficulty.pass_rates(frame["id"], judged, settings.policy.name)
        decisions = difficulty.decide(rates, settings.band, part)
        kept, dropped = _split(frame, part, decisions["reason"].to_list(), decisions["evidence"].to_list())
        return Shard(frame.height, {"kept": kept, "dropped": dropped, "decisions": decisions})

    name = f"{part}.decisions"
    folder = run.where(name, verdicts.folder.name)
    stage = Stage(folder, name, difficulty.VERSION, settings.band.digest(), inputs(problems, verdicts))
    return _shard_by_shard(stage, problems, work)


def _judge(judge: MathJudge, problems: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """Verdicts in the order of the attempts, which are ordered by problem and index."""
    references = {name: (answer, lang, _letter(raw, answer)) for name, answer, lang, raw in problems.iter_rows()}
    groups = held.group_by("problem", maintain_order=True).agg("text", "answer")
    tasks = (
        JudgeTask(
            name,
            reference,
            lang,
            tuple(Response(text, answer) for text, answer in zip(texts, given, strict=True)),
            letter,
        )
        for name, texts, given in groups.iter_rows()
        for reference, lang, letter in (references[name],)
    )
    judged = [verdict for result in judge.judge(tasks) for verdict in result.verdicts]
    compared = pl.Series("reference", [references[name][0] for name in held["problem"]], pl.String)
    return (
        held.select("problem", "policy", "prompt", "sampling", "index")
        .with_columns(
            pl.lit(judge.version).alias("verifier"),
            compared,
            pl.Series("outcome", [verdict.outcome.value for verdict in judged], pl.String),
            pl.Series("answer", [verdict.answer for verdict in judged], pl.String),
            pl.Series("answer_class", [verdict.answer_class for verdict in judged], pl.Int32),
            pl.Series("how", [verdict.how for verdict in judged], pl.String),
        )
        .select(VERDICT.names())
    )


def _letter(raw_answer: str | None, answer: str) -> str | None:
    """The option's letter where the format filter opened a multiple-choice problem: attempts may still name it."""
    if raw_answer is None:
        return None
    letter = named_letter(raw_answer.partition("\\\\")[0])  # up to a LaTeX line break, behind which debris stands
    return letter if letter != answer else None


def _all_kept(frame: pl.DataFrame) -> Shard:
    return Shard(frame.height, {"kept": frame})


def _split(
    problems: pl.DataFrame, stage: str, reasons: Sequence[str | None], evidence: Sequence[str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Kept rows and dropped rows, by a reason per row."""
    judged = problems.with_columns(
        pl.lit(stage).alias("stage"),
        pl.Series("reason", reasons, pl.String),
        pl.Series("evidence", evidence, pl.String),
    )
    kept = judged.filter(pl.col("reason").is_null()).select(problems.columns)
    return kept, judged.filter(pl.col("reason").is_not_null()).select(DROPPED.names())


def _shard_by_shard(stage: Stage, before: Done, work: Callable[[int], Shard]) -> Done:
    """Drive a stage whose shards are those of the stage before."""
    counts = shard_counts(before.folder)
    shards = ((rows, partial(work, index)) for index, rows in enumerate(counts))
    return drive(stage, shards, total=sum(counts), rows_in=before.manifest.kept)
