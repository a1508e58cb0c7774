"""Plug-ins: their contracts, and how they are found, loaded and identified."""
