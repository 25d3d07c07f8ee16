"""A launch line for vLLM, worked out from a model's config and the memory of its GPUs."""
