"""Finds what keeps prompts from being cached, in requests and in the programs that build them."""
