"""Wires the use cases; the only module that knows the adapters."""
