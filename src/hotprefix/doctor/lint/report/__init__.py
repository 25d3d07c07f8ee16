"""Findings as people and machines want them."""
