"""The code pipeline: filters, runs on tests, test generation, language variants."""
