"""In-memory adapters: each passes the same contract suite as its AWS twin."""
