"""What becomes of applications, whole: `catalogs`. --golden writes them anew; read the change."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import pytest
from fastapi import APIRouter, Body, Cookie, Depends, FastAPI, Form, Header, Query, Security, UploadFile
from fastapi.responses import PlainTextResponse
from fastapi.security import APIKeyCookie, HTTPBasic, OAuth2PasswordBearer, OpenIdConnect, SecurityScopes
from pydantic import BaseModel
from starlette.requests import Request

from awp_publish import AgentPublisher
from tests.declare.facts import a_site, review
from tests.documents.sites import SITES
from tests.installed import taken_out

CATALOGS = Path(__file__).parent / "catalogs"
pytestmark = pytest.mark.skipif(bool(taken_out()), reason="they have what all plug-ins declare")


class Book(BaseModel):
    title: str
    pages: int = 1


class Filter(BaseModel):
    shelf: str | None = None
    years: list[int] = []


def fastapi_routes() -> Any:
    """Every place where FastAPI reads an input, and every way to sign in that it knows."""
    site, app = a_site(), FastAPI(title="Shop")
    router = APIRouter(prefix="/v1", tags=["v1"])
    oauth = OAuth2PasswordBearer("token", scopes={"read": "look", "write": "change"}, auto_error=False)

    def paging(page: int = 1, size: Annotated[int, Query(alias="per-page", le=100)] = 10) -> int:
        return page * size

    def scoped(scopes: SecurityScopes, token: Annotated[str | None, Depends(oauth)]) -> str:
        return scopes.scope_str

    @router.get("/books/{shelf}/{rest:path}", summary="List a shelf", operation_id="listShelf")
    @site.action("list_shelf")
    async def list_shelf(
        shelf: int,
        rest: str,
        paged: Annotated[int, Depends(paging)],
        chosen: Annotated[Filter, Query()],
        lang: Annotated[str, Cookie()],
        theme: Annotated[str | None, Cookie(alias="the-theme")] = None,
        agent: Annotated[str, Header(alias="User-Agent")] = "",
        trace: Annotated[list[str] | None, Header()] = None,
    ) -> list[Book]:
        return []

    @router.post("/books", status_code=201, response_model_exclude={"pages"}, deprecated=True)
    @site.action("add_book")
    async def add_book(book: Book, copies: Annotated[int, Body(embed=True)] = 1) -> Book:
        """Add a book.

        And a second paragraph.
        """
        return book

    @router.put("/books/{number}/cover")
    @site.action("set_cover")
    async def set_cover(
        number: int, cover: UploadFile, more: list[UploadFile], alt: Annotated[str, Form()] = ""
    ) -> None:
        """Set a cover."""

    @router.patch("/raw")
    @site.action("patch_raw")
    async def patch_raw(request: Request) -> PlainTextResponse:
        """Patch what is there."""
        return PlainTextResponse("")

    @router.post("/whole")
    @site.action("send_whole")
    async def send_whole(books: list[Book] | None = None, x_key: Annotated[str, Header()] = "") -> dict[str, int]:
        """Send many."""
        return {}

    @app.get("/scoped", dependencies=[Security(scoped, scopes=["write"])])
    @site.action("scoped")
    async def scoped_route(seen: Annotated[str, Security(scoped, scopes=["read"])]) -> str:
        """Look with scopes."""
        return seen

    schemes: dict[str, Any] = {
        "basic": HTTPBasic(),
        "cookie": APIKeyCookie(name="sid"),
        "openid": OpenIdConnect(openIdConnectUrl="/.well-known/openid"),
        "perhaps": APIKeyCookie(name="sid", auto_error=False),
    }
    for name, scheme in schemes.items():

        def signed(key: Any = Depends(scheme)) -> str:  # noqa: B008
            """Be known."""
            return str(key)

        app.get(f"/signed/{name}", name=name)(site.action(f"signed_{name}")(partial(signed)))
    app.include_router(router)
    app.add_middleware(AgentPublisher, site=site, check=False)
    return app, site


APPS: Final[Mapping[str, Callable[[], Any]]] = {**SITES, "fastapi": fastapi_routes}


@pytest.mark.parametrize("name", APPS)
def test_an_application_becomes_the_reviewed_catalog(name, request):
    app, site = APPS[name]()
    review(app, site, CATALOGS / f"{name}.txt", request)
