"""The stages of difficulty, as bare functions: attempts, verdicts on them, and what the pass rates decide.

Each takes the run and the stages before it, and returns a `Done`. Nothing here decides anything about a problem.
"""

from __future__ import annotations

import json
from dataclasses import asdict

import polars as pl

from curation import attempts, difficulty
from curation.choices.resolving import named_letter
from curation.policies.recorded import Recorded
from curation.records import VERDICT, AttemptKey, Domain, Prompted, StoreError
from curation.store import Shard, Stage, read_shard, write_aside
from curation.verify.judge import JudgeTask, MathJudge, Response
from flows.run_folder import Done, Run, difficulty_stage, inputs
from flows.stages import open_judge, shard_by_shard, split_rows

KEY = "key.json"
"""Beside the manifest of an attempts stage: what its attempts are filed under."""


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
    done = shard_by_shard(stage, problems, work)
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
        return shard_by_shard(stage, problems, work)


def decide(run: Run, part: str, problems: Done, verdicts: Done) -> Done:
    """Pass rates, and what they decide."""
    settings = difficulty_stage(run.recipe, part)

    def work(index: int) -> Shard:
        frame = read_shard(problems.folder, "kept", index)
        judged = read_shard(verdicts.folder, "verdicts", index)
        rates = difficulty.pass_rates(frame["id"], judged, settings.policy.name)
        decisions = difficulty.decide(rates, settings.band, part)
        kept, dropped = split_rows(frame, part, decisions["reason"].to_list(), decisions["evidence"].to_list())
        return Shard(frame.height, {"kept": kept, "dropped": dropped, "decisions": decisions})

    name = f"{part}.decisions"
    folder = run.where(name, verdicts.folder.name)
    stage = Stage(folder, name, difficulty.VERSION, settings.band.digest(), inputs(problems, verdicts))
    return shard_by_shard(stage, problems, work)


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
