"""Policy profiles: what a vendor documents about its cache, dated, as data."""
