"""Broken parts by topic, each with the variants that put them in."""
