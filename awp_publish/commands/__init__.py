"""The verbs of `awp-publish`, by what they are about. `cli.py` reads the command line and calls them."""
