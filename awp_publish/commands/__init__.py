"""What `awp-publish` does: one file for each group of verbs. `cli.py` reads the command line and calls them."""
