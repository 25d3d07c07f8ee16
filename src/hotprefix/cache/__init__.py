"""The service that the engine sees: what of a prompt is known already, and what becomes known."""
