"""For people who call an API: lint, explain, report, plan, compare. Works on files alone."""
