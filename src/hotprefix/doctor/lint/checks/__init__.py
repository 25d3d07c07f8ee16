"""The rules at work, one file for each group. Each looks at one request."""
