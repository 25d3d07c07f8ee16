"""Recorded traffic, and what a cache of any size and kind would have made of it."""
