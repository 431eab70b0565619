"""Values that the templates need besides the models: prices, languages, covers, and who is visiting."""

import zlib
from pathlib import Path
from typing import Any

import jinja2
from fastapi import Request
from fastapi.templating import Jinja2Templates

from demo_site import accounts, agents
from demo_site.database import Database
from demo_site.models import Sort
from demo_site.visits import visit_of

TEMPLATES = Path(__file__).parent / "templates"
LANGUAGES = {"en": "English", "fr": "French", "de": "German"}
CLOTHS = 8
PATTERNS = 5


def make_templates(database: Database) -> Jinja2Templates:
    """Return the templates of one shop."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"money": money, "language": LANGUAGES.__getitem__, "binding": binding}
    environment.globals |= {
        "shop_name": agents.NAME,
        "shop_description": agents.DESCRIPTION,
        "sorts": list(Sort),
        "demo_accounts": accounts.DEMO_ACCOUNTS,
    }

    def visitor(request: Request) -> dict[str, Any]:
        with database.reading() as connection:
            return {"visitor": visit_of(request).visitor(connection)}

    return Jinja2Templates(env=environment, context_processors=[visitor])


def money(cents: int) -> str:
    """Write a price."""
    return f"${cents // 100:,}.{cents % 100:02}"


def binding(slug: str) -> str:
    """Return the classes of a book's cover: always the same cloth and pattern for the same book."""
    number = zlib.crc32(slug.encode())
    return f"cloth-{number % CLOTHS} pattern-{number // CLOTHS % PATTERNS}"
