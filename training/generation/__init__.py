"""Generate rollouts while the weights change."""
