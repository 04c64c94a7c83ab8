"""Whether label trust may decide: wrong labels are planted in the run's own votes, and both rules look for them.

How well a posterior finds wrong labels depends on the policies: where their errors are shared (one family of models,
answers that are hard to read) it accuses what merely all find hard, and a majority of one policy's votes may do better.
No run knows its wrong labels, but every run can plant some. A share of the references is replaced by another answer,
`_GIVEN` of them by one that somebody gave, the others by one that nobody did; what either rule accuses besides counts
against it. Some of that is wrong indeed: as many labels as the posterior expects, found as often as planted ones are,
are taken off. A rule that accuses more than `MOST_SOUND` of all labels beyond that is not trusted where the other is;
else votes decide where their F1 is larger by more than `_TIE`. Where votes decide, the posterior still ranks what
people review; where the posterior does, and accuses hardly anyone, its queue is what finds wrong labels.

Pure functions over `curation.difficulty.label_votes.VOTES`. Not here: what is published of it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import polars as pl

from curation.config import Band
from curation.difficulty.early_stopping import WRONG_LABEL_VOTES
from curation.difficulty.label_trust import drawn_problems, fit_labels, label_posteriors
from curation.difficulty.label_votes import REFERENCE, VOTES
from curation.difficulty.vote_parts import Votes

LEAST_PROBLEMS = 200
"""Fewer problems with votes tell nothing."""

MOST_SOUND = 0.01
"""Share of sound labels that a rule may accuse."""

_SHARE, _LEAST_PLANTED, _GIVEN = 0.05, 20, 0.3
_DRAWS = 3
"""How often references are planted: one draw leaves the better rule to chance where problems are few."""

_TIE = 0.02
_BELOW = 1e-6


@dataclass(frozen=True, slots=True)
class RuleFound:
    """What a rule accuses: ``hits`` planted references, ``others`` besides."""

    hits: int
    others: int


@dataclass(frozen=True, slots=True)
class PlantedCheck:
    """Both rules on planted references, all draws together.

    Args:
        problems: with votes; ``share`` of their labels is wrong besides the planted ones, by the posterior.
    """

    planted: int
    by_posterior: RuleFound
    by_votes: RuleFound
    problems: int
    share: float

    def sound(self, rule: RuleFound) -> float:
        """Return how many of the others that a rule accuses seem to have a sound label."""
        return max(0.0, rule.others - self.share * self.problems * rule.hits / max(1, self.planted))

    def is_trusted(self, rule: RuleFound) -> bool:
        """Return whether a rule accuses few sound labels."""
        return self.sound(rule) <= MOST_SOUND * self.problems

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
        """Return in one sentence what was found, and what follows."""
        post, votes = self.by_posterior, self.by_votes
        told = (
            f"of {self.planted} wrong references planted here in turn the posterior finds {post.hits} and accuses "
            f"{post.others} others, votes find {votes.hits} and accuse {votes.others}"
        )
        return told if self.posterior_holds else f"{told}; so votes decide, and the posterior ranks the review"


def check_by_planting(
    votes: Votes,
    voters: Collection[str],
    drop_above: float,
    settled: tuple[str, ...] = (),
    seed: int = 0,
    band: Band | None = None,
) -> PlantedCheck | None:
    """Return how both rules do on planted references; None where there are too few problems.

    Args:
        voters: policies whose votes are counted together; those of the stage that decides.
        drop_above: probability from which the posterior accuses.
        settled, seed: as in `curation.difficulty.label_trust.fit_labels`.
        band: whose rule of votes is tried; None: that of the defaults.
    """
    names = votes.ids
    if len(names) < LEAST_PROBLEMS:
        return None
    drawable, planted, share = names.filter(~names.is_in(list(settled))), 0, 0.0
    learnt_from = votes.of(drawn_problems(names, seed))
    found = np.zeros((2, 2), dtype=int)
    for draw in range(_DRAWS):
        labels = plant_references(votes, drawable, seed + draw)
        wrong = set(labels["problem"])
        model = fit_labels(cast_again(learnt_from, labels, votes.top), settled, seed)
        for part in votes.parts():
            cast = cast_again(part, labels, votes.top)
            weighed = label_posteriors(model, cast, cast["problem"].unique().sort(), settled)
            accused = (
                set(weighed.filter(pl.col("wrong_label") >= drop_above)["problem"]),
                accused_by_votes(cast, voters, band),
            )
            found += [[len(one & wrong), len(one - wrong)] for one in accused]
            besides = weighed.join(labels, on="problem", how="anti")["wrong_label"]
            share += float(besides.sum()) / len(names) / _DRAWS
        planted += len(wrong)
    by_posterior, by_votes = (RuleFound(hits, others) for hits, others in found.tolist())
    return PlantedCheck(planted, by_posterior, by_votes, _DRAWS * len(names), share)


def plant_references(votes: Votes, names: pl.Series, seed: int) -> pl.DataFrame:
    """Return other references for a share of the problems: ``problem``, and ``label``, the class that is right now.

    Args:
        names: sorted ids that may be drawn.
    """
    rng = np.random.default_rng(seed)
    size = min(len(names) // 2, max(_LEAST_PLANTED, round(_SHARE * len(names))))
    drawn = names.gather(np.sort(rng.permutation(len(names))[:size]))
    others = dict(
        votes.of(drawn)
        .filter(pl.col("answer_class") > REFERENCE)
        .group_by("problem")
        .agg(pl.col("answer_class").unique().sort())
        .iter_rows()
    )
    given = {name: int(rng.choice(others[name])) for name in drawn if rng.random() < _GIVEN and name in others}
    labels = [(name, given.get(name, votes.top + 2)) for name in drawn]
    return pl.DataFrame(labels, {"problem": pl.String, "label": pl.Int32}, orient="row")


def cast_again(votes: pl.DataFrame, labels: pl.DataFrame, top: int) -> pl.DataFrame:
    """Return votes (`VOTES`) as they would have been cast with the planted ``labels``.

    Args:
        top: the largest number of a class that any vote has.
    """
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
    """Return where a majority of these policies' votes agrees on another answer than the reference's."""
    band = band or Band()
    cast = votes.filter(pl.col("policy").is_in(list(voters)))
    judged = cast.group_by("problem").agg(pl.col("votes").sum().alias("judged"))
    wrong = cast.filter(pl.col("answer_class") > REFERENCE).group_by("problem", "answer_class")
    most = wrong.agg(pl.col("votes").sum()).group_by("problem").agg(pl.col("votes").max())
    majority = pl.col("votes") > band.wrong_label_share * pl.col("judged")
    table = most.join(judged, on="problem").filter(majority & (pl.col("votes") >= WRONG_LABEL_VOTES))
    return set(table["problem"])


def decided_by_votes(labels: pl.DataFrame, accused: Collection[str], drop_above: float) -> pl.DataFrame:
    """Return `curation.difficulty.label_trust.LABEL` rows; exactly those accused by votes reach ``drop_above``."""
    is_accused = pl.col("problem").is_in(list(accused))
    chance = pl.col("wrong_label")
    moved = pl.when(is_accused).then(pl.max_horizontal(chance, pl.lit(drop_above)))
    return labels.with_columns(
        moved.otherwise(pl.min_horizontal(chance, pl.lit(drop_above - _BELOW))).alias("wrong_label")
    )
