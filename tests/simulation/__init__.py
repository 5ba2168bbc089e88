"""The real use cases under one seeded, hostile scheduler; `python -m tests.simulation SEEDS`."""
