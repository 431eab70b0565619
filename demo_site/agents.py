"""The shop's words about itself to agents, and the agent that only programs ask for."""

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias, get_args

from awp_publish import (
    About,
    AgentJson,
    Discovery,
    Limits,
    Principal,
    Robots,
    Search,
    SessionUser,
    SignIn,
    Site,
    Workflow,
)
from demo_site import accounts, books
from demo_site.database import Database
from demo_site.models import Book, Sort, Summary
from demo_site.summarize import summarize
from demo_site.visits import ACCOUNT

NAME = "First Lines"
DESCRIPTION = "A small bookshop of public-domain books, each shelved with its opening sentence."
UPDATED: Final = datetime(2026, 11, 21, tzinfo=UTC)
LOCAL_URL = "http://127.0.0.1:8000"

SITE_LIMIT = "600/minute"
SEARCH_LIMIT = "30/minute"
"""Nobody who tries the shop by hand meets these by accident."""

RECOVERIES = {
    "NOT_SIGNED_IN": "sign in at /sign-in, or call with a token: /auth.md says where your user gets you one",
    "PREREQUISITE_REQUIRED": "call add_to_basket if it has not succeeded, then retry with the same token",
    "UNKNOWN_BOOK": "call search_books and use the slug of a book in its answer",
    "OUT_OF_STOCK": "call show_book to see how many copies are left, then add_to_basket with a smaller quantity",
    "NOT_IN_BASKET": "call show_basket and use the slug of a line in its answer",
    "EMPTY_BASKET": "call add_to_basket, then retry",
    "WRONG_PASSWORD": "GET /sign-in and use an account that it shows for demonstration",
    "UNKNOWN_ORDER": "use the order_id that check_out answered, with a token of the account that ordered",
    "FOREIGN_ORIGIN": "send the request without Origin and Sec-Fetch-Site headers of another site",
}

HINTS = {
    "prices": "prices are whole cents in US dollars",
    "account": "a token stands for an account and for a basket of its own; its user ends it at /agents/connections",
    "checkout": "check_out comes after add_to_basket and asks for a person's consent to the total; no money is taken",
    "shipping": "ship_order is a job that takes a second or two: poll it at Location; no parcel is really sent",
}

# Appendix B of draft-gaikwad-woa-00 publishes its summarizer with exactly these schemas.
SUMMARY_INPUTS = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "Input document text in English."},
        "max_words": {
            "type": "integer",
            "minimum": 10,
            "maximum": 500,
            "description": "Maximum number of words in the summary.",
        },
    },
    "required": ["text"],
}
SUMMARY_OUTPUTS = {
    "type": "object",
    "properties": {"summary": {"type": "string", "description": "The generated summary."}},
    "required": ["summary"],
}


DoorName: TypeAlias = Literal["mcp", "a2a", "awp", "bridge"]
DOORS: Final = get_args(DoorName)


def create_site(
    url: str | None, database: Database, secret: str, doors: Sequence[DoorName] = (), *, with_search: bool = False
) -> Site:
    """Return what agents may know and do at this public address; by default AWP_PUBLISH_URL, or port 8000 here.

    What is to be remembered of their calls lies beside the shop's database. `secret` signs what they are given.
    """
    public_url = url or os.environ.get("AWP_PUBLISH_URL") or LOCAL_URL

    def find_customer(session: Mapping[str, object]) -> Principal | None:
        """Return who is signed in, with the name to show."""
        account_id = session.get(ACCOUNT)
        if not isinstance(account_id, int):
            return None
        with database.reading() as connection:
            return Principal(str(account_id), claims={"name": accounts.name_of(connection, account_id)})

    customers = SessionUser(
        principal=find_customer, cookie="session", endpoints={"login": "/sign-in", "logout": "/sign-out"}
    )
    site = Site(
        name=NAME,
        description=DESCRIPTION,
        url=public_url,
        about=About(
            contact=f"{public_url}/about",
            documentation="/about",
            updated=UPDATED,
            hints=HINTS,
            workflows=[BUY_A_BOOK],
        ),
        errors=RECOVERIES,
        plugins=[
            AgentJson(entities={"book": Book}),
            SignIn(login="/sign-in", user=customers),
            *([Search()] if with_search else []),
            *doors,
            Discovery(robots=Robots(disallow=["/basket", "/checkout", "/sign-in"])),
        ],
        authenticate=customers,
        limits=Limits(rate_limit=SITE_LIMIT),
        store=f"sqlite:///{database.path.with_stem(database.path.stem + '-agents')}",
        secret_keys=secret,
    )
    declare_summarizer(site)
    declare_prompt(site, database)
    declare_probe(site, database)
    return site


BUY_A_BOOK = Workflow(
    id="buy_a_book",
    name="Buy a book",
    description="From a search to an order that is on its way.",
    steps=("search_books", "add_to_basket", "check_out", "ship_order", "show_order"),
)


def summarize_text(text: str, max_words: int = 100) -> Summary:
    """Return the sentences that say most, in their own order."""
    return Summary(summary=summarize(text, max_words))


def declare_summarizer(site: Site) -> None:
    """Add the agent of the WoA draft's appendix B, which has no page and no route of its own."""
    site.agent(
        "summarizer",
        name="Document Summarizer",
        description="Summarizes English text.",
        version="1.0.0",
        capabilities=["https://example.com/capability/summarization"],
        inputs=SUMMARY_INPUTS,
        outputs=SUMMARY_OUTPUTS,
        effect="read",
        examples=[{"text": "The IETF is an open community of designers.", "max_words": 40}],
        metadata={"operations": {"default": "Default summarization operation."}},
    )(summarize_text)


def declare_prompt(site: Site, database: Database) -> None:
    """Add what a person may ask their own model; a title is completed from the shelves while it is typed."""

    def titles(typed: str) -> list[str]:
        with database.reading() as connection:
            found = books.search(connection, typed, Sort.relevance, 1, 20)
        return [book.title for book in found.books]

    @site.prompt("discuss_book", title="Discuss a book", complete={"title": titles})
    def discuss_book(title: str) -> str:
        """Talk about a book on the shelves."""
        return f"Let us discuss {title}. Look it up with search_books, and begin with its first sentence."


NEEDS_THE_SHELVES = (
    "search_books",
    "show_book",
    "show_basket",
    "add_to_basket",
    "change_quantity",
    "remove_from_basket",
    "sign_in",
    "sign_out",
    "check_out",
    "show_order",
    "ship_order",
)


def declare_probe(site: Site, database: Database) -> None:
    """Let the shop say by itself when its database does not answer; the summarizer works without it."""

    @site.status(*NEEDS_THE_SHELVES)
    def has_books() -> bool:
        with database.reading() as connection:
            return books.count(connection) > 0
