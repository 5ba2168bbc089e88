"""Pure decisions: no I/O, no clock, no chance."""
