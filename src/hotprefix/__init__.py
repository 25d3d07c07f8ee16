"""Hotprefix: a context-cache server for large language models."""

__version__ = "0.1.0"
