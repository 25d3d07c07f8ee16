"""The native protocol of DashScope."""
