"""Measures a server over HTTP, and shows what was found: tables, plots and targets."""
