"""What the shop answers, as models: the JSON dialect of every page."""

from datetime import datetime
from enum import Enum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Currency = Literal["USD"]


def drop_description(schema: dict[str, Any]) -> None:
    """Leave the docstring out of a schema: the names of members say as much, and agents pay for every word."""
    schema.pop("description", None)


class Model(BaseModel):
    """What all answers have in common."""

    model_config = ConfigDict(json_schema_extra=drop_description)


class Sort(Enum):
    """In which order books are listed."""

    relevance = "relevance"
    title = "title"
    author = "author"
    year = "year"
    price = "price"


class Book(Model):
    """One book on our shelves."""

    slug: str = Field(description="Name of the book in addresses and forms.")
    title: str
    author: str
    year: int = Field(description="When the original was first published.")
    language: str = Field(description="BCP 47 tag of our edition.")
    translator: str | None = Field(description="Null for an original.")
    subjects: list[str]
    opening_line: str
    price_cents: int = Field(description="Of one copy.")
    currency: Currency = "USD"
    stock: int = Field(description="Copies left.")


class SearchResults(Model):
    """One page of what was found."""

    query: str
    sort: Sort
    total: int = Field(description="Books on all pages together.")
    page: int
    pages: int = Field(description="0 if nothing was found.")
    books: list[Book]


class Subject(Model):
    """A subject and how many books we have on it."""

    name: str
    books: int


class Home(Model):
    """What lies in the window today."""

    opening: Book = Field(description="The book whose first line is in the window today.")
    front_table: list[Book]
    subjects: list[Subject]


class About(Model):
    """What this shop is."""

    name: str
    description: str
    books: int


class BasketLine(Model):
    """Copies of one book."""

    slug: str
    title: str
    author: str
    quantity: int
    price_cents: int
    total_cents: int


class Basket(Model):
    """What is in the basket."""

    lines: list[BasketLine]
    copies: int
    total_cents: int
    currency: Currency = "USD"


class Visitor(Model):
    """Who is visiting."""

    signed_in: bool
    name: str | None = Field(description="Of the account.")
    copies_in_basket: int


class OrderLine(Model):
    """Copies at the price of the day."""

    slug: str
    title: str
    author: str
    quantity: int
    price_cents: int
    total_cents: int


class Order(Model):
    """An order that was placed."""

    order_id: str
    status: Literal["received", "shipped"]
    placed_at: datetime
    name: str = Field(description="Who receives the parcel.")
    address: str
    lines: list[OrderLine]
    total_cents: int
    currency: Currency = "USD"


class Shipment(Model):
    """An order of yours is on its way."""

    order_id: str
    total_cents: int
    currency: Currency = "USD"


class RefusalDetail(Model):
    """Why a request was refused."""

    code: str = Field(examples=["OUT_OF_STOCK"])
    message: str


class Refusal(Model):
    """The body of a refused request."""

    detail: RefusalDetail


class Summary(Model):
    """A summary of a text."""

    summary: str = Field(description="The generated summary.")
