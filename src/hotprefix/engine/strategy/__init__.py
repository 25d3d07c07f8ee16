"""How a sequence uses the arena: one small object for each way, and what they need of keys and values."""
