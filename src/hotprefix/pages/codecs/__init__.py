"""Storage codecs: a block of the arena ↔ fewer bytes for the tiers."""
