"""Which block holds what, who holds it, and what goes first: pure bookkeeping, no bytes, no clocks."""
