"""Which of a vendor's caches is cheapest for a trace, and with how many markers."""
