"""Options for a machine and a model: what is there, what is measured, and what follows."""
