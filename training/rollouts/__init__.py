"""Draw problems, roll them out, judge the rollouts, and make training samples."""
