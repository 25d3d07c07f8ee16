"""Python programs that build requests: their source is read, never run."""
