"""Handlers with the events that AWS gives them."""
