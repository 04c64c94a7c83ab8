"""The code pipeline: filters, test runs, test generation, language variants."""
