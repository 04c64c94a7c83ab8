"""Old keys of a training recipe and the new ones, a line each; `curation.config.renaming` says how they are written."""

TRAIN_RECIPE: dict[str, str] = {
    "judges": "verifier_workers",
    "samples": "logged_rollouts",
    "collector.group": "collector.group_size",
    "collector.queue": "collector.queue_size",
    "collector.staleness": "collector.max_staleness",
    "packing.tokens": "packing.micro_batch_tokens",
    "optim.clip_norm": "optim.max_grad_norm",
    "rewards.tests": "rewards.tests_per_group",
    "rewards.consistency.most_other": "rewards.consistency.max_other_share",
    "objective.kl": "objective.kl_coef",
    "objective.entropy": "objective.entropy_coef",
    "objective.scale": "objective.loss_aggregation",
    "objective.normalise": "objective.advantage_normalisation",
    "objective.diversity": "objective.group_filter",
    "curriculum.lengths": "curriculum.length_schedule",
    "curriculum.*_plateau.least_gain": "curriculum.*_plateau.min_gain",
    "curriculum.pools.least_weight": "curriculum.pools.min_effective_rollouts",
}
