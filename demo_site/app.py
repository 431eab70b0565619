"""The bookshop as an ASGI application."""

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final

from fastapi import Depends, FastAPI
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.middleware.sessions import SessionMiddleware

from awp_publish import AgentPublisher
from awp_publish.plugins.templating import install
from demo_site import agents
from demo_site.answers import AnswerHead, refuse
from demo_site.database import Database
from demo_site.looks import make_templates
from demo_site.origins import refuse_foreign_origins
from demo_site.routes.accounts import register_accounts
from demo_site.routes.baskets import register_baskets
from demo_site.routes.books import register_books
from demo_site.routes.orders import register_orders
from demo_site.routes.shipments import register_shipments
from demo_site.routes.shop import register_shop

STATIC: Final = Path(__file__).parent / "static"
DAY: Final = 24 * 60 * 60
PACKING_PAUSE: Final = 0.4
"""Seconds that each step of packing takes, so that there is something to see of it."""


def create_app(
    url: str | None = None,
    database: Path | None = None,
    packing_pause: float = PACKING_PAUSE,
    doors: Sequence[agents.DoorName] = (),
    with_search: bool = False,
) -> FastAPI:
    """Return a bookshop that is reached at this public origin and keeps its books in this SQLite file.

    Without a file, the one named by ``FIRST_LINES_DATABASE`` is used, or else a temporary one. Cookies and tokens are
    signed with ``FIRST_LINES_SECRET`` (16 characters or more), or else with a secret that is kept in the file: then a
    file that is to stay is made here and now. ``packing_pause`` is in seconds.
    ``doors`` are the doors that agents find open besides the invoke door. ``with_search`` adds the actions ``search``
    and ``fetch`` over all pages of the shop.
    """
    shelves = Database(database or _path_from_environment())
    secret = os.environ.get("FIRST_LINES_SECRET") or shelves.secret()
    site = agents.create_site(url, shelves, secret, doors, with_search=with_search)
    app = FastAPI(
        title=agents.NAME,
        description=agents.DESCRIPTION,
        dependencies=[Depends(refuse_foreign_origins(url))],
        # The interactive documentation loads its scripts from elsewhere, and this site loads nothing from elsewhere.
        docs_url=None,
        redoc_url=None,
        lifespan=_open_shop(shelves),
    )
    app.state.templates = make_templates(shelves)
    install(app.state.templates.env, site)
    app.state.templates.env.globals["has_bridge"] = "bridge" in doors
    for register in (register_shop, register_books, register_baskets, register_accounts, register_orders):
        register(app, site, shelves)
    register_shipments(app, site, shelves, packing_pause)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.add_exception_handler(HTTPException, refuse)
    app.add_exception_handler(RequestValidationError, refuse)
    app.add_middleware(AnswerHead)
    app.add_middleware(AgentPublisher, site=site, link_headers=True)
    # Added last, it stands outermost: calls of agents have a session too, and by it the shop knows who they are.
    https_only = (url or "").startswith("https:")
    app.add_middleware(SessionMiddleware, secret_key=secret, max_age=7 * DAY, same_site="lax", https_only=https_only)
    return app


def _path_from_environment() -> Path | None:
    path = os.environ.get("FIRST_LINES_DATABASE")
    return Path(path) if path else None


def _open_shop(database: Database) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await run_in_threadpool(database.prepare)
        try:
            yield
        finally:
            await run_in_threadpool(database.close)

    return lifespan


app = create_app()
