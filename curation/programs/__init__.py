"""Steps of the code pipeline: format filter, runs on tests, test generation, language variants."""
