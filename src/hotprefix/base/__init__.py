"""Ids, errors and the injected clock: what every other room may use."""
