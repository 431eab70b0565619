"""What agents can do here."""

from typing import TypeAlias

from awp_publish_django.store import DjangoStore
from pydantic import BaseModel

from awp_publish import ApplicationUser, Limits, Site

URL = "https://shop.example"

site = Site(
    name="Shop",
    description="Sells books.",
    url=URL,
    store=DjangoStore(using="store", timeout=20),
    authenticate=ApplicationUser(),
    limits=Limits(timeout=10),
    plugins=["mcp", "a2a", "awp"],
)


@site.agent("add")
def add(first: int, second: int) -> int:
    """Add two numbers."""
    return first + second


class And(BaseModel):
    """Two of these within each other can be read in many ways."""

    all: "Filter"


class Or(BaseModel):
    all: "Filter"


Filter: TypeAlias = And | Or | int
And.model_rebuild()
Or.model_rebuild()


@site.agent("filter_books")
def filter_books(where: Filter) -> str:
    """Filter the books."""
    return "found"


@site.agent("count_books", outputs={"type": "integer"})
def count_books() -> int:
    """Count the books, as the request sees them."""
    from tests.django.shop.models import Book

    return Book.objects.count()


site.event("order_shipped")
