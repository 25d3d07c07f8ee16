"""What outlives a request: stored responses and their chains, scenes, and how long talks are cut."""
