"""Implicit, explicit and session caches: what a request may read, what it writes, what is billed."""
