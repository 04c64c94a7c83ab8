"""The code pipeline's own steps: what can be asked as a program, solutions on tests, tests made, languages."""
