"""The numbers of the README, one command each."""
