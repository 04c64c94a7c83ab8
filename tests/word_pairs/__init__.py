"""What learns which words of a translation say a word of its original: a script, no tests."""
