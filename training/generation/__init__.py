"""Generate rollouts with torch or vLLM, and bring new weights to the generators."""
