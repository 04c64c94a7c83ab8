"""The code demo's problems with solutions and tests, and its report."""
