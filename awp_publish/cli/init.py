"""The command `init`: a first application in an empty folder."""

from argparse import Namespace
from pathlib import Path
from typing import Final

from awp_publish.cli.console import Console, write
from awp_publish.problems import DeclarationError

FASTAPI: Final = '''"""A site that agents can use. Run: uvicorn main:app"""

from typing import Annotated

from awp_publish import AgentPublisher, Site
from fastapi import FastAPI
from pydantic import Field

site = Site(
    name="Bookshop",  # what people call the site
    description="Find and order books.",  # the first sentence that an agent reads
    url="http://127.0.0.1:8000",  # the public address; without it, the environment variable AWP_PUBLISH_URL
    # plugins=["mcp", "a2a", "awp"],  # the live protocols besides plain HTTP and WoA; each is an extra of the package
    # store="sqlite:///agents.db",  # where keys, confirmations and jobs are remembered; memory without it
    # secret_keys=["..."],  # signs confirmations; without it they end with the process
)
app = FastAPI()


@app.get("/search")
@site.action("search_books", examples=[{"q": "emma"}])  # the decorator nearest to the function
async def search(
    q: Annotated[str, Field(description="Words of the title or the author.")],
    limit: Annotated[int, Field(description="How many titles at most.", ge=1, le=50)] = 10,
) -> list[str]:
    """Search books by title or author."""  # what an agent reads of the action
    return [title for title in ("Emma", "Moby-Dick") if q.lower() in title.lower()][:limit]


@app.post("/orders")
@site.action(
    "order_book",
    confirm="Order {quantity} x {title}.",  # a person reads this before anything happens
    rate_limit="10/minute",  # for each caller
    idempotency="24h",  # the same key is the same order
    examples=[{"title": "Emma", "quantity": 1}],
)
async def order(
    title: Annotated[str, Field(description="The title, as search_books gives it.")],
    quantity: Annotated[int, Field(description="How many copies.", ge=1, le=20)] = 1,
) -> str:
    """Order copies of a book."""
    return f"{quantity} x {title} ordered"


app.add_middleware(AgentPublisher, site=site)  # the last middleware that is added is the outermost one

# See what is published:   awp-publish show main:app
# Hold it to the rules:    awp-publish check main:app
# Call it as an agent:     awp-publish call main:app search_books q=emma
'''

STARLETTE: Final = '''"""A site that agents can use. Run: uvicorn main:app"""

from awp_publish import AgentPublisher, Site
from pydantic import BaseModel, Field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

site = Site(
    name="Bookshop",  # what people call the site
    description="Find and order books.",  # the first sentence that an agent reads
    url="http://127.0.0.1:8000",  # the public address; without it, the environment variable AWP_PUBLISH_URL
    # plugins=["mcp", "a2a", "awp"],  # the live protocols besides plain HTTP and WoA; each is an extra of the package
    # store="sqlite:///agents.db",  # where keys, confirmations and jobs are remembered; memory without it
)


class Search(BaseModel):
    """What a search reads of the request: Starlette's handlers do not say it themselves."""

    q: str = Field(description="Words of the title or the author.")


class Found(BaseModel):
    """What it answers."""

    titles: list[str]


@site.action("search_books", inputs=Search, outputs=Found, examples=[{"q": "emma"}])
async def search(request: Request) -> JSONResponse:
    """Search books by title or author."""  # what an agent reads of the action
    q = request.query_params["q"].lower()
    return JSONResponse({"titles": [title for title in ("Emma", "Moby-Dick") if q in title.lower()]})


app = Starlette(routes=[Route("/search", search)])
app.add_middleware(AgentPublisher, site=site)  # the last middleware that is added is the outermost one

# See what is published:   awp-publish show main:app
# Hold it to the rules:    awp-publish check main:app
# Call it as an agent:     awp-publish call main:app search_books q=emma
'''

DJANGO: Final = '''"""What this project lets agents do. In settings.py:

INSTALLED_APPS += ["awp_publish_django"]
MIDDLEWARE += ["awp_publish_django.middleware.AgentPublisherMiddleware"]
ALLOWED_HOSTS += ["localhost", "127.0.0.1"]  # the host of the url below
AWP_PUBLISH = {"SITE": "agents.site"}  # the import path of the object below: this file beside manage.py
"""

from awp_publish import Site

site = Site(
    name="Bookshop",  # what people call the site
    description="Find and order books.",  # the first sentence that an agent reads
    url="http://127.0.0.1:8000",  # the public address; without it, the environment variable AWP_PUBLISH_URL
    # plugins=["mcp", "a2a"],  # the live protocols besides plain HTTP and WoA; each is an extra of the package
    # store="sqlite:///agents.db",  # where keys, confirmations and jobs are remembered; memory without it
)


@site.agent("recommend_book", examples=[{"mood": "rainy"}])  # a function without an address of its own
def recommend(mood: str) -> str:
    """Recommend a book for a mood.

    mood: how the reader feels, in a word.
    """  # what an agent reads of the action
    return "Emma" if mood == "sunny" else "Moby-Dick"


# A view becomes an action where it stands, in views.py, with a Django form as what it takes:
#
#     from agents import site
#
#     @site.action("search_books", inputs=SearchForm)
#     def search(request): ...
#
# See what is published:   python manage.py agents show
# Hold it to the rules:    python manage.py agents check
# Call it as an agent:     python manage.py agents call recommend_book mood=rainy
'''

FILES: Final = {"fastapi": ("main.py", FASTAPI), "starlette": ("main.py", STARLETTE), "django": ("agents.py", DJANGO)}


def init(console: Console, options: Namespace) -> int:
    """Write the file with which a project begins. Raises DeclarationError if it exists."""
    name, text = FILES[options.framework]
    target = Path(options.file or name)
    if str(target) == "-":
        write(text.removesuffix("\n"), is_block=True)
        return 0
    if target.is_dir():
        target = target / name
    if target.exists() and not options.force:
        raise DeclarationError(str(target), "exists already.", "Name another file, or use --force to replace it.")
    target.write_text(text, encoding="utf-8")
    console.say(f"{target} was written: read its comments, then run awp-publish check.")
    console.json({"file": str(target)})
    return 0
