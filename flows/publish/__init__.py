"""What a finished run publishes: the curated set, its versions, its disputed labels, its translations."""
