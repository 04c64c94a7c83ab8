"""Programs: code found in responses, problems made from tables, verdicts by one judge, files of programs."""
