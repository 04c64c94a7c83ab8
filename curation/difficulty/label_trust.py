"""Estimates the probability of a wrong reference from all policies' answers (Dawid and Skene 1979).

Equal wrong answers are not independent votes (Chinese restaurant processes: Ewens 1972, Teh et al. 2006). Majority
votes decide if they do better on planted wrong references (`check_by_planting`).

Invariants: pure functions over `VOTES`; the order of rows changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import polars as pl

from curation.config import Band
from curation.difficulty.early_stopping import WRONG_LABEL_VOTES
from curation.difficulty.item_response import (
    Array,
    Indices,
    ItemResponseModel,
    fit,
    log_likelihoods,
    rising,
    sums_of_runs,
)
from curation.difficulty.label_votes import REFERENCE, SOURCE, VOTES, VoteParts, VotePatterns, vote_patterns
from curation.difficulty.pass_rates import overrule
from curation.records import DropReason

VERSION = "label-trust@3"

LABEL = pl.Schema(
    {
        "problem": pl.String(),
        "wrong_label": pl.Float64(),  # probability that the reference is wrong
        "rival_class": pl.Int32(),  # the likeliest right answer if the reference is not; null if there is none
        "rival_right": pl.Float64(),  # probability that it is right
    }
)

_BEST = pl.Schema({"pattern": pl.Int64(), "place": pl.Int32(), "rival_right": pl.Float64()})

MAX_PROBLEMS = 5_000
"""Max problems to learn reliabilities from."""

_CONCENTRATIONS = (0.1, 0.4, 1.5, 6.0, 40.0)
_TRAPS = np.array(list(product(_CONCENTRATIONS, _CONCENTRATIONS)))
"""[traps, 2] theta and gamma."""

_LEVELS = 3
"""Levels of difficulty, each with its own traps."""

_PRIOR_SHARE, _SHARE_PROBLEMS = 0.02, 50.0
"""Prior share of wrong labels, and its weight in problems."""

_TRAP_PROBLEMS = 20.0
"""Weight, in problems, of all levels' traps in a level's, and of flat traps in those."""

_LURED, _LURED_TOO = 0.03, 0.4
"""Probability that a policy, and another one with it, gives the same wrong answer; one alone outweighs no reference."""

_TURNS, _MAX_ROUNDS, _TOLERANCE = 3, 100, 1e-4
_CHUNK = 5_000
"""Problems weighed at once, about 10 KB each."""


@dataclass(frozen=True, slots=True)
class LabelModel:
    """Learnt reliabilities and the share of wrong labels.

    Args:
        traps: [levels, traps] frequencies of `_TRAPS`.
    """

    items: ItemResponseModel
    traps: Array
    share: float


@dataclass(frozen=True, slots=True)
class _Likelihoods:
    """Log-likelihoods of hypotheses, sorted by pattern.

    Args:
        place: [hypotheses] the right answer: 0 is the reference, the last is none.
        solved: [hypotheses, levels] of finding that answer.
        agreed: [hypotheses, traps] likelihoods of the wrong answers, over exp(``top``).
        lured: [hypotheses] of being lured; -inf without votes for that answer.
    """

    pattern: Indices
    place: Indices
    solved: Array
    agreed: Array
    top: Array
    lured: Array

    def agreement(self, traps: Array) -> Array:
        """Return [hypotheses, levels] likelihoods at each level's traps, over exp(``top``)."""
        return np.asarray(np.einsum("ht,lt->hl", self.agreed, traps))


def label_posteriors(
    model: LabelModel, votes: pl.DataFrame, problems: pl.Series, settled: tuple[str, ...] = ()
) -> pl.DataFrame:
    """Return `LABEL` rows in the order of ``problems``; ``settled`` references are right."""
    ids, labels = problems.alias("problem").to_frame(), [LABEL.to_frame()]
    for chunk in ids.iter_slices(_CHUNK):
        seen = vote_patterns(votes, chunk["problem"], settled)
        table = _as_labels(seen, _likelihoods(seen, model.items), model)
        labels.append(chunk.join(table, on="problem", how="left", maintain_order="left").cast(LABEL))
    return pl.concat(labels)


def _as_labels(seen: VotePatterns, likelihoods: _Likelihoods, model: LabelModel) -> pl.DataFrame:
    right, best = _weighed(seen, likelihoods, model)
    return (
        pl.DataFrame({"problem": seen.problems, "pattern": seen.pattern, "wrong_label": 1 - right[seen.pattern]})
        .join(best, on="pattern", how="left")
        .join(seen.classes.rename({"answer_class": "rival_class"}), on=["problem", "place"], how="left")
        .with_columns(pl.col("rival_right").fill_null(0.0), pl.col("wrong_label").clip(0.0, 1.0))
        .select(LABEL.names())
    )


def _weighed(seen: VotePatterns, likelihoods: _Likelihoods, model: LabelModel) -> tuple[Array, pl.DataFrame]:
    """Return [patterns] P(reference is right), and the likeliest rivals."""
    posteriors = _normalised(likelihoods, model, seen)[0]
    is_rival = (likelihoods.place > REFERENCE) & (likelihoods.place <= seen.answers[likelihoods.pattern])
    right = np.zeros(len(seen.answers))
    at = likelihoods.place == REFERENCE
    right[likelihoods.pattern[at]] = posteriors[at].sum(axis=1)
    rivals = pl.DataFrame(
        {
            "pattern": likelihoods.pattern[is_rival],
            "place": likelihoods.place[is_rival].astype(np.int32),
            "rival_right": posteriors[is_rival].sum(axis=1),
        },
        schema=_BEST,
    ).sort("pattern", "rival_right", "place", descending=[False, True, False])
    return right, rivals.unique("pattern", keep="first", maintain_order=True)


def fit_labels(
    votes: pl.DataFrame, settled: tuple[str, ...] = (), seed: int = 0, start: LabelModel | None = None
) -> LabelModel:
    """Return the model learnt from `VOTES` on up to `MAX_PROBLEMS` problems.

    Args:
        start: a similar model, to save rounds.

    Raises:
        GoldilocksError: there are no votes.
    """
    ids = drawn_problems(votes["problem"].unique().sort(), seed)
    votes = votes.join(ids.alias("problem").to_frame(), on="problem", how="semi")
    seen = vote_patterns(votes, ids, settled)
    traps = np.full((_LEVELS, len(_TRAPS)), 1 / len(_TRAPS))
    items = fit(_counts(votes, None), slopes=True, start=start.items if start is not None else None)
    model = LabelModel(items, traps, _PRIOR_SHARE)
    for turn in range(_TURNS):
        likelihoods = _likelihoods(seen, model.items)
        model = _learn(seen, likelihoods, model)
        if turn + 1 < _TURNS:
            labels = _as_labels(seen, likelihoods, model)
            model = replace(model, items=fit(_counts(votes, labels), slopes=True, start=model.items))
    return model


def drawn_problems(ids: pl.Series, seed: int) -> pl.Series:
    """Return up to `MAX_PROBLEMS` of these sorted ids."""
    if len(ids) <= MAX_PROBLEMS:
        return ids
    return ids.gather(np.sort(np.random.default_rng(seed).permutation(len(ids))[:MAX_PROBLEMS]))


def _counts(votes: pl.DataFrame, labels: pl.DataFrame | None) -> pl.DataFrame:
    """Return counts against the likeliest answers, or the references."""
    policies = votes.filter(~pl.col("policy").str.starts_with(SOURCE))
    right = pl.lit(REFERENCE, pl.Int32)
    if labels is not None:
        rival = pl.when(pl.col("rival_right") >= pl.col("wrong_label") / 2).then("rival_class").otherwise(-1)
        truth = labels.select("problem", right=pl.when(pl.col("wrong_label") > 0.5).then(rival).otherwise(REFERENCE))
        policies = policies.join(truth, on="problem", how="left")
        right = pl.col("right")
    return policies.group_by("problem", "policy").agg(
        pl.col("votes").filter((pl.col("answer_class") == right).fill_null(False)).sum().alias("correct"),
        pl.col("votes").sum().alias("judged"),
    )


def _learn(seen: VotePatterns, likelihoods: _Likelihoods, model: LabelModel) -> LabelModel:
    frequency, size = seen.frequency, seen.frequency.sum()
    witnesses = sum(not name.startswith(SOURCE) for name in seen.policies)
    share_weight = max(_SHARE_PROBLEMS, size / (witnesses - 1)) if witnesses > 1 else None
    last = -np.inf
    for _ in range(_MAX_ROUNDS):
        joint, pattern_likelihoods = _normalised(likelihoods, model, seen)
        mass = joint * frequency[likelihoods.pattern][:, None]
        wrong = float(mass[likelihoods.place != REFERENCE].sum())
        share = _PRIOR_SHARE
        if share_weight is not None:
            share = (wrong + _PRIOR_SHARE * share_weight) / (size - float(seen.is_settled @ frequency) + share_weight)
        counts = model.traps * np.einsum("hl,ht->lt", mass / likelihoods.agreement(model.traps), likelihoods.agreed)
        whole = (counts.sum(axis=0) + _TRAP_PROBLEMS / len(_TRAPS)) / (counts.sum() + _TRAP_PROBLEMS)
        traps = counts + _TRAP_PROBLEMS * whole
        model = replace(model, traps=traps / traps.sum(axis=1, keepdims=True), share=share)
        total = float(frequency @ pattern_likelihoods)
        if abs(total - last) < _TOLERANCE * size:
            break
        last = total
    return model


def _normalised(likelihoods: _Likelihoods, model: LabelModel, seen: VotePatterns) -> tuple[Array, Array]:
    """Return [hypotheses, levels] posteriors, and [patterns] the log-likelihood."""
    logs = likelihoods.solved + likelihoods.top[:, None] + np.log(likelihoods.agreement(model.traps))
    is_reference = likelihoods.place == REFERENCE
    logs = logs + np.where(is_reference, np.log(1 - model.share), np.log(model.share))[:, None]
    starts = np.flatnonzero(np.diff(likelihoods.pattern, prepend=-1))
    right = np.log(model.share) - np.log(1 - model.share)
    with np.errstate(divide="ignore"):
        lure = np.logaddexp.reduceat(logs + likelihoods.lured[:, None] - right, starts, axis=0)
    logs[starts] = np.logaddexp(logs[starts], lure)
    logs[~is_reference & (seen.is_settled[likelihoods.pattern] > 0)] = -np.inf
    top = np.maximum.reduceat(logs.max(axis=1), starts)
    shares = np.exp(logs - top[likelihoods.pattern][:, None])
    totals = np.add.reduceat(shares.sum(axis=1), starts)
    return shares / totals[likelihoods.pattern][:, None], np.log(totals) + top


def _likelihoods(seen: VotePatterns, items: ItemResponseModel) -> _Likelihoods:
    sizes = seen.answers + 2
    pattern = np.repeat(np.arange(len(sizes)), sizes)
    begin = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    place = np.arange(len(pattern)) - begin[pattern]
    cell = begin[seen.cell_pattern] + seen.cell_place  # the hypothesis that a cell's answer is right
    solved = _solved(seen, items, pattern, cell)
    voters = np.bincount(cell, minlength=len(pattern))
    is_lure = (place > REFERENCE) & (voters > 0)
    lured = np.where(is_lure, np.log(_LURED) + (voters - 1) * np.log(_LURED_TOO), -np.inf)
    agreed = _agreed(seen, pattern, place, begin, cell)
    top = agreed.max(axis=1)
    return _Likelihoods(pattern, place, solved, np.exp(agreed - top[:, None]), top, lured)


def _solved(seen: VotePatterns, items: ItemResponseModel, pattern: Indices, cell: Indices) -> Array:
    none = _binomials(
        items, seen, np.zeros(len(seen.ballot_judged), dtype=np.int64), np.arange(len(seen.ballot_judged))
    )
    base = _summed(none, seen.ballot_pattern, len(seen.answers))
    of_cells = _binomials(items, seen, seen.cell_votes, seen.cell_ballot) - none[seen.cell_ballot]
    logs = base[pattern] + np.log(items.weights) + _summed(of_cells, cell, len(pattern))
    below = np.cumsum(items.weights.reshape(-1, len(items.slopes)).sum(axis=1))
    level = np.repeat(np.minimum((below * _LEVELS).astype(np.int64), _LEVELS - 1), len(items.slopes))
    return np.stack([np.logaddexp.reduce(logs[:, level == number], axis=1) for number in range(_LEVELS)], axis=1)


def _summed(table: Array, groups: Indices, size: int) -> Array:
    """Return [size, columns] sums of ``table`` by sorted ``groups``."""
    return sums_of_runs(table, np.arange(len(table)), np.searchsorted(groups, np.arange(size + 1)))


def _binomials(items: ItemResponseModel, seen: VotePatterns, correct: Indices, ballot: Indices) -> Array:
    """Return [rows, grid] log-likelihoods of ``correct`` votes on a ballot."""
    policy = seen.ballot_policy[ballot]
    table = log_likelihoods(items, seen.policies, policy, correct, seen.ballot_judged[ballot])
    is_source = np.array([name.startswith(SOURCE) for name in seen.policies], dtype=bool)[policy]
    table[is_source] = np.log(np.where(correct[is_source] > 0, 1 - _PRIOR_SHARE, _PRIOR_SHARE))[:, None]
    return table


def _agreed(seen: VotePatterns, pattern: Indices, place: Indices, begin: Indices, cell: Indices) -> Array:
    theta, gamma = _TRAPS.T
    size, patterns = len(pattern), len(seen.answers)
    answered = seen.ballot_answered[seen.cell_ballot]
    of_theta = rising(theta, int(seen.ballot_answered.max(initial=0)))
    factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, 2 + int(seen.cell_votes.max(initial=1)))))])
    new_answer = np.log(theta) + factorial[seen.cell_votes - 1][:, None]
    base = _summed(new_answer, seen.cell_pattern, patterns)
    base -= _summed(of_theta[seen.ballot_answered], seen.ballot_pattern, patterns)
    logs = base[pattern] + _summed(of_theta[answered] - of_theta[answered - seen.cell_votes] - new_answer, cell, size)
    voters = np.bincount(cell, minlength=size)  # of the answer that is right by the hypothesis
    voters_of_reference = voters[begin][pattern]
    all_voters = np.bincount(seen.cell_pattern, minlength=patterns)[pattern]
    is_wrong = place != REFERENCE
    ways = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, 2 + int(voters.max(initial=0)))))])
    of_gamma = rising(gamma, int(all_voters.max(initial=0)) + 1)
    each = np.where((place > REFERENCE) & (voters > 0), ways[np.maximum(voters - 1, 0)], 0.0)
    others = np.bincount(pattern, weights=each, minlength=patterns)[pattern] - each
    others = others + np.where(is_wrong, ways[voters_of_reference], 0.0)
    is_none = place > seen.answers[pattern]
    dishes = seen.answers[pattern] + is_none
    logs += dishes[:, None] * np.log(gamma) + others[:, None]
    return np.asarray(logs - of_gamma[all_voters - voters + is_wrong])


LABEL_TRUST = pl.Schema(
    {
        **LABEL,
        "rival_answer": pl.String(),  # the rival's first writing, or null
        "evidence": pl.String(),  # which policies gave which answer, in words
    }
)


def described(labels: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
    """Return `LABEL_TRUST` rows, with evidence in words.

    Args:
        answers: `curation.difficulty.label_votes.ANSWERS` rows.
    """
    rival = answers.select("problem", rival_class="answer_class", rival_answer="answer", rivals="policies")
    backed = answers.filter(pl.col("answer_class") == REFERENCE).select("problem", backers="policies")
    joined = labels.join(rival, on=["problem", "rival_class"], how="left", maintain_order="left").join(
        backed, on="problem", how="left", maintain_order="left"
    )
    evidence = pl.format(
        "wrong with probability {}: {} say {}, {} the reference",
        pl.col("wrong_label").round(3),
        pl.col("rivals").fill_null("none"),
        pl.col("rival_answer").str.head(200).fill_null("one answer"),
        pl.col("backers").fill_null("none"),
    )
    return joined.with_columns(evidence.alias("evidence")).select(LABEL_TRUST.names()).cast(LABEL_TRUST)


def suspect_labels(decisions: pl.DataFrame, labels: pl.DataFrame, drop_above: float) -> pl.DataFrame:
    """Return `DECISION` rows with decided problems dropped as suspected_wrong_label from ``drop_above`` on."""
    trust = labels.select("problem", "wrong_label", against="evidence")
    undecided = pl.col("reason").is_in([DropReason.TOO_FEW_ATTEMPTS.value, DropReason.VERIFIER_FAILED.value])
    accused = (pl.col("wrong_label") >= drop_above).fill_null(False) & ~undecided.fill_null(False)
    joined = decisions.join(trust, on="problem", how="left", maintain_order="left")
    judged = overrule(joined, accused, DropReason.SUSPECTED_WRONG_LABEL, pl.col("against"))
    return judged.drop("wrong_label", "against")


MIN_PROBLEMS = 200
"""Min problems with votes for a check."""

MAX_SOUND = 0.01
"""Max share of sound labels that a rule may accuse."""

_SHARE, _MIN_PLANTED, _EXISTING = 0.05, 20, 0.3
DRAWS = 3
"""Times references are planted; one draw is too noisy."""

_TIE = 0.02
_BELOW = 1e-6


@dataclass(frozen=True, slots=True)
class RuleFound:
    """A rule's accusations: ``hits`` of planted references, and ``others``."""

    hits: int
    others: int


@dataclass(frozen=True, slots=True)
class PlantedCheck:
    """Results of both rules on planted references."""

    planted: int
    by_posterior: RuleFound
    by_votes: RuleFound
    problems: int
    share: float

    def sound(self, rule: RuleFound) -> float:
        """Estimate how many sound labels a rule accuses."""
        return max(0.0, rule.others - self.share * self.problems * rule.hits / max(1, self.planted))

    def is_trusted(self, rule: RuleFound) -> bool:
        """Return whether a rule accuses few sound labels."""
        return self.sound(rule) <= MAX_SOUND * self.problems

    def f1(self, rule: RuleFound) -> float:
        """Return the harmonic mean of precision and recall."""
        return 2 * rule.hits / max(1.0, rule.hits + self.sound(rule) + self.planted)

    @property
    def posterior_holds(self) -> bool:
        """Return whether the posterior may decide."""
        trusted = self.is_trusted(self.by_posterior)
        if trusted != self.is_trusted(self.by_votes):
            return trusted
        return self.f1(self.by_posterior) >= self.f1(self.by_votes) - _TIE

    @property
    def sentence(self) -> str:
        """Describe the result and its consequence."""
        post, votes = self.by_posterior, self.by_votes
        counts = (
            f"of {self.planted} wrong references planted here in turn the posterior finds {post.hits} and accuses "
            f"{post.others} others, votes find {votes.hits} and accuse {votes.others}"
        )
        return counts if self.posterior_holds else f"{counts}; so votes decide, and the posterior ranks the review"


def check_by_planting(
    votes: VoteParts,
    voters: Collection[str],
    drop_above: float,
    settled: tuple[str, ...] = (),
    seed: int = 0,
    band: Band | None = None,
    start: LabelModel | None = None,
    advance: Callable[[int], None] = lambda _draws: None,
) -> PlantedCheck | None:
    """Return both rules' results on planted references, or None below `MIN_PROBLEMS`.

    Args:
        voters: policies of the deciding stage.
        start: the model of the unchanged votes.
        advance: called with 1 after each draw.
    """
    names = votes.ids
    if len(names) < MIN_PROBLEMS:
        return None
    drawable, planted, share = names.filter(~names.is_in(list(settled))), 0, 0.0
    learnt_from = votes.of(drawn_problems(names, seed))
    counts = np.zeros((2, 2), dtype=int)
    for draw in range(DRAWS):
        labels = plant_references(votes, drawable, seed + draw)
        wrong = set(labels["problem"])
        model = fit_labels(cast_again(learnt_from, labels, votes.top), settled, seed, start)
        for part in votes.parts():
            cast = cast_again(part, labels, votes.top)
            weighed = label_posteriors(model, cast, cast["problem"].unique().sort(), settled)
            accused = (
                set(weighed.filter(pl.col("wrong_label") >= drop_above)["problem"]),
                accused_by_votes(cast, voters, band),
            )
            counts += [[len(problems & wrong), len(problems - wrong)] for problems in accused]
            unplanted = weighed.join(labels, on="problem", how="anti")["wrong_label"]
            share += float(unplanted.sum()) / len(names) / DRAWS
        planted += len(wrong)
        advance(1)
    by_posterior, by_votes = (RuleFound(hits, others) for hits, others in counts.tolist())
    return PlantedCheck(planted, by_posterior, by_votes, DRAWS * len(names), share)


def plant_references(votes: VoteParts, names: pl.Series, seed: int) -> pl.DataFrame:
    """Return some problems with another class (``label``) as reference."""
    rng = np.random.default_rng(seed)
    size = min(len(names) // 2, max(_MIN_PLANTED, round(_SHARE * len(names))))
    drawn = names.gather(np.sort(rng.permutation(len(names))[:size]))
    rivals = dict(
        votes.of(drawn)
        .filter(pl.col("answer_class") > REFERENCE)
        .group_by("problem")
        .agg(pl.col("answer_class").unique().sort())
        .iter_rows()
    )
    existing = {name: int(rng.choice(rivals[name])) for name in drawn if rng.random() < _EXISTING and name in rivals}
    labels = [(name, existing.get(name, votes.top + 2)) for name in drawn]
    return pl.DataFrame(labels, {"problem": pl.String, "label": pl.Int32}, orient="row")


def cast_again(votes: pl.DataFrame, labels: pl.DataFrame, top: int) -> pl.DataFrame:
    """Return `VOTES` against the planted ``labels``; ``top`` is the largest class."""
    number = pl.col("answer_class")
    cast = votes.join(labels, on="problem", how="left", maintain_order="left").with_columns(
        pl.when(pl.col("label").is_null() | number.is_null())
        .then(number)
        .when(number == REFERENCE)
        .then(pl.lit(top + 1, pl.Int32))
        .when(number == pl.col("label"))
        .then(pl.lit(REFERENCE, pl.Int32))
        .otherwise(number)
        .alias("answer_class")
    )
    return cast.select(VOTES.names()).cast(VOTES)


def accused_by_votes(votes: pl.DataFrame, voters: Collection[str], band: Band | None = None) -> set[str]:
    """Return problems on which most policies' votes agree on a wrong answer."""
    band = band or Band()
    cast = votes.filter(pl.col("policy").is_in(list(voters)))
    judged = cast.group_by("problem").agg(pl.col("votes").sum().alias("judged"))
    wrong = cast.filter(pl.col("answer_class") > REFERENCE).group_by("problem", "answer_class")
    top = wrong.agg(pl.col("votes").sum()).group_by("problem").agg(pl.col("votes").max())
    majority = pl.col("votes") > band.wrong_label_share * pl.col("judged")
    table = top.join(judged, on="problem").filter(majority & (pl.col("votes") >= WRONG_LABEL_VOTES))
    return set(table["problem"])


def decided_by_votes(labels: pl.DataFrame, accused: Collection[str], drop_above: float) -> pl.DataFrame:
    """Return `LABEL` rows in which only the accused reach ``drop_above``."""
    is_accused = pl.col("problem").is_in(list(accused))
    chance = pl.col("wrong_label")
    moved = pl.when(is_accused).then(pl.max_horizontal(chance, pl.lit(drop_above)))
    return labels.with_columns(
        moved.otherwise(pl.min_horizontal(chance, pl.lit(drop_above - _BELOW))).alias("wrong_label")
    )
