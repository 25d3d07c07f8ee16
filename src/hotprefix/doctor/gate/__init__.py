"""Does a change to prompts lower what can be cached? Two revisions of a repository, or two logs."""
