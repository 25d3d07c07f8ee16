"""Who asks: API keys, quotas and rate limits."""
