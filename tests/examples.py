"""How many examples a property draws."""

from hypothesis import settings


def examples(most: int) -> int:
    """Return `most` where they are drawn anew (`make properties`), and a share of it where they never change."""
    share = settings().max_examples / 100
    return max(10, round(most * share))
