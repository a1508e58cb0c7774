"""Plug-ins: their contracts, and how to find, load and identify them."""
