"""Handlers of FastAPI in many shapes, each of which is an action. Their docstrings say what is special about them."""

import functools
import inspect
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Generic, Literal, TypeVar

from fastapi import (
    APIRouter,
    Body,
    Cookie,
    Depends,
    FastAPI,
    File,
    Form,
    Header,
    HTTPException,
    Query,
    Request,
    Response,
    Security,
    UploadFile,
)
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse
from fastapi.security import APIKeyCookie, APIKeyHeader, APIKeyQuery, HTTPBasic, HTTPBearer, OAuth2PasswordBearer
from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.requests import HTTPConnection

T = TypeVar("T")


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Author(BaseModel):
    name: str
    born: date | None = None
    secret: str = "s"


class Book(BaseModel):
    """A book."""

    title: str = Field(alias="bookTitle")
    pages: int = 1
    author: Author | None = None
    chapters: list[Author] = []
    by_name: dict[str, Author] = {}


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    title: str


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    title: str


class Checked(BaseModel):
    first: int
    last: int

    @model_validator(mode="after")
    def in_order(self) -> "Checked":
        assert self.first <= self.last
        return self


class Page(BaseModel, Generic[T]):
    items: list[T]


@dataclass
class Size:
    width: int
    height: int = 2


class User(BaseModel):
    name: str


class OwnRequest(Request): ...


bearer, lenient = HTTPBearer(), HTTPBearer(auto_error=False)
key, cookie, in_query = APIKeyHeader(name="x-key"), APIKeyCookie(name="sid", auto_error=False), APIKeyQuery(name="k")
oauth = OAuth2PasswordBearer(tokenUrl="token", scopes={"buy": "Buy."}, auto_error=False)
basic = HTTPBasic(auto_error=False)


def current_user(found: Annotated[Any, Depends(lenient)]) -> User:
    return User(name="ann")


def current_or_nobody(found: Annotated[Any, Depends(lenient)]) -> User | None:
    return None


def current_unsaid(found: Annotated[Any, Depends(lenient)]):
    return None


def refusing(found: Annotated[Any, Depends(lenient)]) -> User | None:
    if found is None:
        raise HTTPException(401)
    return None


def of_nobody(user: Annotated[User | None, Depends(current_or_nobody)]) -> User:
    if user is None:
        raise HTTPException(401)
    return user


def passing_on(user: Annotated[User | None, Depends(current_or_nobody)]) -> User:
    return user or User(name="nobody")


def unannotated(user=Depends(current_or_nobody)) -> User:  # noqa: B008
    if user is None:
        raise HTTPException(401)
    return user


def counting(user: Annotated[User | None, Depends(current_or_nobody)]) -> int:
    return 0


def by_header(authorization: Annotated[str | None, Header()] = None) -> str:
    if authorization is None:
        raise HTTPException(401)
    return authorization


def by_key_header(x_api_key: Annotated[str | None, Header()] = None) -> str | None:
    return x_api_key


def by_request(request: Request) -> str:
    token = request.headers.get("authorization")
    if not token:
        raise HTTPException(401)
    return token


def by_connection(connection: HTTPConnection) -> str:
    if "user" not in connection.session:
        raise HTTPException(status_code=401)
    return str(connection.session["user"])


def by_request_leniently(request: Request) -> str | None:
    return request.headers.get("authorization")


def counted(function: Any) -> Any:
    @functools.wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        return function(*given, **named)

    return call


by_wrapped = counted(by_request)


class Limits:
    def __init__(self, limit: Annotated[int, Query(ge=1, le=9)] = 5, skip: int = 0) -> None:
        self.limit, self.skip = limit, skip


def common(page: int = 1, title: str = "", x_trace: Annotated[str, Header()] = "") -> int:
    return page


def two_needed(first: int, title: str, x_trace: Annotated[str, Header()]) -> str:
    return f"{first} {title} {x_trace}"


def with_body(size: Annotated[int, Body(embed=True)]) -> int:
    return size


def with_form(size: Annotated[int, Form()]) -> int:
    return size


def _shown(value: object) -> str:
    return type(value).__name__ if isinstance(value, Request | Response | UploadFile | Limits) else repr(value)


def make(site: Any) -> FastAPI:
    """Make an application with all of them."""
    app, router = FastAPI(), APIRouter(prefix="/more", tags=["more", Colour.RED])

    def add(name: str, path: str, handler: Any, method: str = "POST", of: Any = app, **options: Any) -> None:
        site.action(name)(handler)
        of.add_api_route(path, handler, methods=[method], **options)

    def handler(name: str, **annotations: Any) -> Any:
        """Return a handler with these parameters, which returns what is annotated as `answer`."""
        answer, defaults = annotations.pop("answer", str), annotations.pop("defaults", {})

        async def handle(**given: Any) -> Any:
            return ", ".join(f"{each}: {_shown(value)}" for each, value in given.items())

        parameters = [
            inspect.Parameter(
                each,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=kind,
                default=defaults.get(each, inspect.Parameter.empty),
            )
            for each, kind in annotations.items()
        ]
        handle.__signature__ = inspect.Signature(parameters, return_annotation=answer)  # type: ignore[attr-defined]
        handle.__annotations__ = {**annotations, "return": answer}
        handle.__name__, handle.__doc__ = name, f"{name.replace('_', ' ').capitalize()}."
        return handle

    # Parameters
    add("path", "/path/{n}/{colour}/{rest:path}", handler("path", n=int, colour=Colour, rest=str), "GET")
    add(
        "query",
        "/query",
        handler(
            "query",
            q=Annotated[str, Query(min_length=1)],
            tags=Annotated[list[int], Query(alias="tag")],
            used=bool,
            defaults={"tags": [], "used": False},
        ),
        "GET",
    )
    add(
        "headers",
        "/headers",
        handler(
            "headers",
            x_own=Annotated[str, Header()],
            x_api_key=Annotated[str, Header()],
            lang=Annotated[str, Cookie()],
            defaults={"lang": "en", "x_api_key": ""},
        ),
        "GET",
    )
    add(
        "depends",
        "/depends",
        handler("depends", limits=Annotated[Limits, Depends()], page=Annotated[int, Depends(common)]),
        "GET",
    )
    add("reads_query", "/reads-query", read_query, "GET")
    add("deletes", "/deletes/{n}", handler("deletes", n=int, answer=None), "DELETE", status_code=204)

    # Bodies
    add("model", "/model", handler("model", book=Book))
    add("closed", "/closed", handler("closed", book=Closed))
    add("open", "/open", handler("open", book=Open))
    add("checked", "/checked", handler("checked", span=Checked))
    add("again", "/again", handler("again", span=Checked, answer=Checked))
    add("bounded", "/bounded", handler("bounded", size=Annotated[Size, Body(json_schema_extra={"x-unit": "cm"})]))
    add("two", "/two", handler("two", book=Book, size=Size))
    add("embedded", "/embedded", handler("embedded", copies=Annotated[int, Body(embed=True, gt=0)]))
    add("list", "/list", handler("list", titles=list[str]))
    add("number", "/number", handler("number", copies=Annotated[int, Body()]))
    add("optional", "/optional", handler("optional", book=Closed | None, defaults={"book": None}))
    add("either", "/either", handler("either", thing=Closed | Size), "PUT")
    add("raw", "/raw", read_body)
    add(
        "form",
        "/form",
        handler("form", title=Annotated[str, Form()], tags=Annotated[list[str], Form()], defaults={"tags": []}),
    )
    add(
        "file",
        "/file",
        handler(
            "file",
            title=Annotated[str, Form()],
            cover=Annotated[UploadFile, File()],
            more=list[UploadFile],
            defaults={"more": []},
        ),
    )
    add("text", "/text", handler("text", words=Annotated[str, Body(media_type="text/plain")]))

    # Answers
    add("gives", "/gives", handler("gives", answer=Book), "GET")
    add("gives_by_name", "/gives-by-name", handler("gives_by_name", answer=Book), "GET", response_model_by_alias=False)
    add("gives_some", "/gives-some", handler("gives_some", answer=Book), "GET", response_model_exclude_none=True)
    add(
        "gives_less",
        "/gives-less",
        handler("gives_less", answer=Book),
        "GET",
        response_model_exclude={"pages", "author"},
    )
    add(
        "gives_parts",
        "/gives-parts",
        handler("gives_parts", answer=Book),
        "GET",
        response_model_include={"bookTitle": True, "author": {"name"}, "chapters": {"__all__": {"name", "born"}}},
    )
    add(
        "gives_without",
        "/gives-without",
        handler("gives_without", answer=list[Book]),
        "GET",
        response_model_exclude={"__all__": {"author": {"secret": True}, "pages": ...}},
    )
    add(
        "gives_page",
        "/gives-page",
        handler("gives_page", answer=Page[Author]),
        "GET",
        response_model_exclude_unset=True,
    )
    add("gives_nothing", "/gives-nothing", handler("gives_nothing", answer=None))
    add("gives_any", "/gives-any", handler("gives_any", answer=Any), "GET", response_model=None)
    add("html", "/html", handler("html", answer=HTMLResponse), "GET", response_class=HTMLResponse)
    add("plain", "/plain", handler("plain", answer=PlainTextResponse), "GET", response_class=PlainTextResponse)
    add("redirect", "/redirect", handler("redirect", answer=RedirectResponse), "GET", response_class=RedirectResponse)
    add("created", "/created", handler("created", answer=Author), status_code=201)
    add(
        "several",
        "/several",
        handler("several", answer=Author),
        "GET",
        responses={404: {"model": Closed}, 401: {"description": "No."}},
    )

    for number, (kind, options) in enumerate(FILTERED):
        add(f"filtered_{number}", f"/filtered-{number}", handler(f"filtered_{number}", answer=kind), "GET", **options)

    # Words
    add("summary", "/summary", handler("summary"), "GET", summary="A summary", description="", deprecated=True)
    add(
        "described",
        "/described",
        handler("described"),
        "GET",
        description="Another description.",
        operation_id="own_id",
    )
    add("hidden", "/hidden", handler("hidden", book=Closed), include_in_schema=False)
    add("tagged", "/tagged/{n}", handler("tagged", n=int), "GET", router, tags=["one"])
    bound = functools.partial(partly, 7)
    site.action("partly")(bound)
    app.add_api_route("/partly", bound, methods=["GET"])

    # Who calls
    for name, dependency in DEPENDENCIES.items():
        add(
            name,
            f"/{name}",
            handler(name, user=dependency),
            "GET",
            responses={401: {}} if name == "documents_401" else None,
        )
    add("scoped", "/scoped", handler("scoped", token=Annotated[str, Security(oauth, scopes=["buy"])]), "GET")
    add("around", "/around", handler("around"), "GET", dependencies=[Depends(bearer), Depends(common)])
    add("around_leniently", "/around-leniently", handler("around_leniently"), "GET", dependencies=[Depends(refusing)])

    # Who calls is known before a person is asked
    for name, dependency in ASKED.items():
        asked = handler(name, page=Annotated[int, Depends(common)], **dependency)
        site.action(name, confirm=True)(asked)
        app.add_api_route(f"/{name}", asked, methods=["POST"])
    for asked in (asked_by_default, functools.partial(asked_in_part, 7)):
        name = getattr(asked, "__name__", "asked_in_part")
        site.action(name, confirm=True)(asked)
        app.add_api_route(f"/{name}", asked, methods=["POST"], name=name)
    asked = handler("asked_around")
    site.action("asked_around", confirm=True)(asked)
    app.add_api_route("/asked-around", asked, methods=["POST"], dependencies=[Depends(bearer), Depends(common)])

    add("two_schemes", "/two-schemes", handler("two_schemes", **ASKED["asked_two"]), "GET")
    add(
        "two_lenient",
        "/two-lenient",
        handler("two_lenient", one=DEPENDENCIES["by_basic"], other=DEPENDENCIES["by_cookie"]),
        "GET",
    )
    add("said_to_refuse", "/said", handler("said_to_refuse"), "GET", openapi_extra={"security": [{"HTTPBearer": []}]})
    add(
        "said_to_be_open",
        "/open-said",
        handler("said_to_be_open", user=DEPENDENCIES["by_bearer"]),
        "GET",
        openapi_extra={"security": [{}]},
    )
    app.add_api_route("/by-name", handler("included_by_name", n=int), methods=["POST"])
    app.add_api_route(
        "/by-id", handler("included_by_id", n=int), methods=["POST"], operation_id="included_by_operation"
    )
    site.include(operations=["included_by_name", "included_by_operation"])

    # Functions without a route
    for name, parameters in AGENTS.items():
        site.agent(name)(handler(name, **parameters))

    app.include_router(router)
    return app


class Several(BaseModel):
    first: int
    second: str
    third: Author
    rest: list[Author] | None = None
    named: dict[str, Author]


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str]


FILTERED: list[tuple[Any, dict[str, Any]]] = [
    (Several, {"response_model_exclude": {"first"}}),
    (Several, {"response_model_include": {"second", "third", "named"}}),
    (Several, {"response_model_exclude": {"third": {"name", "secret"}, "rest": {"__all__": {"born"}}}}),
    (
        Several,
        {"response_model_include": {"third": {"name": True, "born": ...}, "rest": {"__all__": ...}, "first": ...}},
    ),
    (Several, {"response_model_exclude_none": True}),
    (list[Several], {"response_model_exclude_defaults": True}),
    (dict[str, Several], {"response_model_exclude_unset": True}),
    (tuple[Several, Author], {"response_model_exclude_none": True}),
    (Several | Author, {"response_model_exclude_none": True}),
    (Several | Author, {"response_model_exclude": {"name", "first"}}),
    (list[Several], {"response_model_include": {"__all__": {"first"}}}),
    (list[Several], {"response_model_exclude": {"first"}}),
    (Several, {"response_model_include": set()}),
    (Annotated[Cat | Dog, Field(discriminator="kind")], {"response_model_exclude": {"lives", "tricks"}}),
]

ASKED: dict[str, dict[str, Any]] = {
    "asked_nobody": {},
    "asked_bearer": {"user": Annotated[Any, Depends(bearer)]},
    "asked_key": {"user": Annotated[Any, Security(key)]},
    "asked_refusing": {"user": Annotated[Any, Depends(refusing)]},
    "asked_header": {"user": Annotated[str, Depends(by_header)]},
    "asked_request": {"user": Annotated[str, Depends(by_request)]},
    "asked_wrapped": {"user": Annotated[str, Depends(by_wrapped)]},
    "asked_two": {"maybe": Annotated[Any, Depends(lenient)], "user": Annotated[Any, Security(key)]},
    "asked_limits": {"limits": Annotated[Limits, Depends()]},
}


async def asked_by_default(user: Any = Depends(bearer), page: int = Depends(common)) -> str:  # noqa: B008
    """Ask by a default."""
    return "asked"


async def asked_in_part(size: int, user: Annotated[Any, Depends(bearer)]) -> str:
    """Ask in part."""
    return "asked"


DEPENDENCIES: dict[str, Any] = {
    "by_bearer": Annotated[Any, Depends(bearer)],
    "by_lenient_bearer": Annotated[Any, Depends(lenient)],
    "by_key": Annotated[str, Security(key)],
    "by_cookie": Annotated[str | None, Depends(cookie)],
    "by_query": Annotated[str, Depends(in_query)],
    "by_basic": Annotated[Any, Depends(basic)],
    "by_user": Annotated[User, Depends(current_user)],
    "by_maybe_user": Annotated[User | None, Depends(current_or_nobody)],
    "by_unsaid": Annotated[Any, Depends(current_unsaid)],
    "by_unsaid_user": Annotated[User, Depends(current_unsaid)],
    "by_refusing": Annotated[User | None, Depends(refusing)],
    "by_of_nobody": Annotated[User, Depends(of_nobody)],
    "by_passing_on": Annotated[User, Depends(passing_on)],
    "by_unannotated": Annotated[User, Depends(unannotated)],
    "by_counting": Annotated[int, Depends(counting)],
    "by_header": Annotated[str, Depends(by_header)],
    "by_key_header": Annotated[str | None, Depends(by_key_header)],
    "by_request": Annotated[str, Depends(by_request)],
    "by_connection": Annotated[str, Depends(by_connection)],
    "by_request_leniently": Annotated[str | None, Depends(by_request_leniently)],
    "documents_401": Annotated[Any, Depends(lenient)],
    "by_wrapped": Annotated[str, Depends(by_wrapped)],
    "by_nobody": Annotated[int, Depends(common)],
}

AGENTS: dict[str, dict[str, Any]] = {
    "bare_agent": {"title": str},
    "agent_with_request": {"title": str, "request": Request},
    "agent_with_own_request": {"title": str, "asked": OwnRequest},
    "agent_with_response": {"title": str, "response": Response},
    "agent_with_common": {"title": str, "page": Annotated[int, Depends(common)]},
    "agent_with_several": {"title": str, "of": Annotated[str, Depends(two_needed)]},
    "agent_with_limits": {"book": Book, "limits": Annotated[Limits, Depends(Limits)]},
    "agent_with_body": {"size": int, "of": Annotated[int, Depends(with_body)]},
    "agent_with_user": {"title": str, "user": Annotated[User, Depends(current_user)]},
    "agent_with_bearer": {"user": Annotated[Any, Depends(bearer)]},
}

WRONG: dict[str, dict[str, Any]] = {
    "agent_with_form": {"of": Annotated[int, Depends(with_form)]},
    "agent_with_bare_request": {"request": None},
    "agent_with_nonsense": {"of": Annotated[int, Depends(lambda thing: 1)], "thing": object()},
}


async def read_query(request: Request, q: str = "") -> dict[str, Any]:
    """Read the query itself."""
    return dict(request.query_params)


async def read_body(request: Request) -> str:
    """Read the body itself."""
    return (await request.body()).decode()


def partly(size: int, q: str = "") -> list[Any]:
    """Take a number beforehand."""
    return [size, q]
