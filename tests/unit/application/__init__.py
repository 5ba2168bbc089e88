"""The use cases and what they share."""
