"""Two workers under load, one of which is killed every few seconds."""

from typing import Final

TOKEN: Final = "a-token-of-the-soak-test"

PEEKS: Final = 60
"""How often a minute a caller may peek, at both workers together."""
