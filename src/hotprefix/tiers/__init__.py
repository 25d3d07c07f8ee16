"""Where idle blocks live outside the arena: RAM, disk and Redis, behind one interface."""
