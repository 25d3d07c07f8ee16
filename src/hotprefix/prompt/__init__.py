"""Requests → chat template → text → tokens, and tokens → text. Knows nothing of KV."""
