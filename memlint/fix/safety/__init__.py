"""Safety of fixes: where a graph can be cut, where a guard belongs, and whether the program could notice."""
