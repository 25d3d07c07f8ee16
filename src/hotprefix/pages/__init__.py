"""The KV bytes: one arena of blocks in the compute format."""
