"""Who used what: one row a request, kept for ever, counted once."""
