"""Puntual: a multi-tenant distributed task scheduler on AWS."""
