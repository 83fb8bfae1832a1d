"""One run of the linter: discover, analyse, ask the rules, suppress, select."""
