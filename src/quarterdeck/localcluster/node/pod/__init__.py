"""The pods of this node: what is decided about them, what runs, and what is told of them."""
