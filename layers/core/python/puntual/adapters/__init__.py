"""One module per technology and port."""
