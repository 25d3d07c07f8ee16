"""Models on this machine: fetched, read, converted once, described by a manifest."""
