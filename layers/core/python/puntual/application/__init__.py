"""Use cases, one per file, and the ports that they reach the world through."""
