"""What a fix may do: where a graph can be cut, where a guard belongs, and whether anybody would notice."""
