"""Use cases on the fakes."""
