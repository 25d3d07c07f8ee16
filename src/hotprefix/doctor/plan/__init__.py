"""How many servers a load needs, and which of a vendor's caches suits it: from traces, without a model."""
