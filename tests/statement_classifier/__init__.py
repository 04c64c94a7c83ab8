"""What trains the format filter's classifier from the labelled rows: a script, no tests."""
