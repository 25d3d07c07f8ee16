"""Logs of every kind, read as calls."""
