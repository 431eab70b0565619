"""What the shop answers, as models: the JSON dialect of every page."""

from datetime import datetime
from enum import Enum
from typing import Literal

from pydantic import BaseModel, Field

Currency = Literal["USD"]


class Sort(Enum):
    """In which order books are listed."""

    relevance = "relevance"
    title = "title"
    author = "author"
    year = "year"
    price = "price"


class Book(BaseModel):
    """One book on our shelves."""

    slug: str = Field(description="Name of the book in addresses and forms.", examples=["moby-dick"])
    title: str
    author: str
    year: int = Field(description="Year the work was first published; for a translation, that of the original.")
    language: str = Field(description="Language of our edition, as a BCP 47 tag.", examples=["en"])
    translator: str | None = Field(description="Who translated our edition; null if it is the original.")
    subjects: list[str]
    opening_line: str = Field(description="First sentence of the text.", examples=["Call me Ishmael."])
    price_cents: int = Field(description="Price of one copy in cents.")
    currency: Currency = "USD"
    stock: int = Field(description="Copies in the shop now.")


class SearchResults(BaseModel):
    """One page of the books that were found."""

    query: str
    sort: Sort
    total: int = Field(description="Books found, on all pages together.")
    page: int
    pages: int = Field(description="How many pages there are; 0 if nothing was found.")
    books: list[Book]


class Subject(BaseModel):
    """A subject and how many books we have on it."""

    name: str
    books: int


class Home(BaseModel):
    """What lies in the window today."""

    opening: Book = Field(description="The book whose first line is in the window today.")
    front_table: list[Book]
    subjects: list[Subject]


class About(BaseModel):
    """What this shop is."""

    name: str
    description: str
    books: int


class BasketLine(BaseModel):
    """Copies of one book in a basket."""

    slug: str
    title: str
    author: str
    quantity: int
    price_cents: int = Field(description="Price of one copy in cents.")
    total_cents: int


class Basket(BaseModel):
    """What the visitor has put aside to buy."""

    lines: list[BasketLine]
    copies: int = Field(description="Copies of all books together.")
    total_cents: int
    currency: Currency = "USD"


class Visitor(BaseModel):
    """Who is visiting, as far as we know."""

    signed_in: bool
    name: str | None = Field(description="Name of the account, if signed in.")
    copies_in_basket: int


class OrderLine(BaseModel):
    """Copies of one book in an order, at the price of the day."""

    slug: str
    title: str
    author: str
    quantity: int
    price_cents: int
    total_cents: int


class Order(BaseModel):
    """An order that was placed."""

    order_id: str
    status: Literal["received", "shipped"]
    placed_at: datetime
    name: str = Field(description="Who receives the parcel.")
    address: str
    lines: list[OrderLine]
    total_cents: int
    currency: Currency = "USD"


class RefusalDetail(BaseModel):
    """Why a request was refused."""

    code: str = Field(examples=["OUT_OF_STOCK"])
    message: str


class Refusal(BaseModel):
    """The body of a refused request."""

    detail: RefusalDetail


class Summary(BaseModel):
    """A summary of a text."""

    summary: str = Field(description="The generated summary.")
