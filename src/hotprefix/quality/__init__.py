"""What reuse, codecs and precisions cost in the quality of a model's answers, measured."""
