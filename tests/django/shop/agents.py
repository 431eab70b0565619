"""What agents can do here."""

import os

from awp_publish import ApplicationUser, Site

URL = "https://shop.example"

site = Site(
    name="Shop",
    description="Sells books.",
    url=URL,
    store=os.environ.get("SHOP_STORE", "memory:"),
    authenticate=ApplicationUser(),
    timeout=10,
)


@site.agent("add")
def add(first: int, second: int) -> int:
    """Add two numbers."""
    return first + second
