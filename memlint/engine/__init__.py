"""One run of the linter: discover files, analyse, run the rules, suppress, select."""
