"""The list of prompts that somebody should look at."""
