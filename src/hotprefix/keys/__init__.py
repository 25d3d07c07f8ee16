"""One identity for a block everywhere: scope, then the chained digest of its token history."""
