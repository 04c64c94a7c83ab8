"""The code pipeline's own steps: the format filter, solutions run on tests, test generation, language variants."""
