"""One handler, two dialects: an HTML page for a browser, the same facts as JSON for a program."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request, Response
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse
from fastapi.templating import Jinja2Templates
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from demo_site.models import Refusal
from demo_site.origins import page_before
from demo_site.refusals import NOT_SIGNED_IN
from demo_site.visits import Visit

ModelT = TypeVar("ModelT", bound=BaseModel)

# The same address answers in two dialects and shows the visitor's own basket: caches must know both.
HEADERS = {"Vary": "Accept", "Cache-Control": "private, no-cache"}
# script-src: the one script is that of the bridge, where it is open.
# connect-src: what reads the manifests from within a page (an AWAS parser, Lighthouse) fetches them under this policy.
PAGE_HEADERS = HEADERS | {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


class Answer:
    """How to answer one request."""

    def __init__(self, request: Request, status: int = HTTPStatus.OK) -> None:
        self._request = request
        self._status = status

    def page(self, template: str, model: ModelT, extra: Mapping[str, object] | None = None) -> ModelT | Response:
        """Return the model to a program; to a browser the template, which finds it as ``model``."""
        if wants_json(self._request):
            return model
        return self.html(template, {**(extra or {}), "model": model})

    def go_on(self, path: str, model: ModelT) -> ModelT | Response:
        """Return the model to a program; send a browser to the page that shows what its form has done."""
        if wants_json(self._request):
            return model
        return RedirectResponse(path, HTTPStatus.SEE_OTHER, HEADERS)

    def html(self, template: str, context: dict[str, Any]) -> Response:
        """Render a template."""
        templates: Jinja2Templates = self._request.app.state.templates
        return templates.TemplateResponse(self._request, template, context, self._status, PAGE_HEADERS)


def wants_json(request: Request) -> bool:
    """Say whether the requester asks for JSON: a program does, a browser always names HTML."""
    accept = request.headers.get("accept", "").lower()
    return "application/json" in accept and "text/html" not in accept


def answer_to(request: Request, response: Response) -> Answer:
    """Return the means to answer a request."""
    response.headers.update(HEADERS)
    return Answer(request)


CurrentAnswer = Annotated[Answer, Depends(answer_to)]


class AnswerHead:
    """Answers HEAD as GET without the body, which FastAPI's routes leave to others (RFC 9110, section 9.3.2)."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on every request."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return

        async def send_without_body(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        await self.app({**scope, "method": "GET"}, receive, send_without_body)


def refuse(request: Request, error: Exception) -> Response:
    """Tell a program by status, code and message, a person by a page, that a request is refused."""
    status, detail, headers = _what_happened(error)
    if wants_json(request):
        return JSONResponse({"detail": detail}, status, HEADERS | headers)
    answer = Answer(request, status)
    context = {"status": HTTPStatus(status), "detail": detail}
    if status != HTTPStatus.UNAUTHORIZED:
        page = answer.html("refused.html", context)
    else:
        page = _ask_to_sign_in(request, answer, context)
    page.headers.update(headers)
    return page


def _what_happened(error: Exception) -> tuple[int, Any, dict[str, str]]:
    if isinstance(error, RequestValidationError):
        return HTTPStatus.UNPROCESSABLE_ENTITY, jsonable_encoder(error.errors()), {}
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if headers.get("Allow") == "GET":
        headers["Allow"] = "GET, HEAD"  # see AnswerHead
    return error.status_code, error.detail, headers


def _ask_to_sign_in(request: Request, answer: Answer, context: dict[str, Any]) -> Response:
    way_back = request.url.path if request.method == "GET" else page_before(request)
    if way_back is not None and context["detail"]["code"] == NOT_SIGNED_IN:
        Visit(request.session).remember_way_back(way_back)
    return answer.html("sign_in.html", context)


def page_responses(*refusals: HTTPStatus) -> dict[int | str, dict[str, Any]]:
    """Describe for OpenAPI a page: HTML beside JSON, and how it may be refused."""
    html = {HTTPStatus.OK.value: {"content": {"text/html": {"schema": {"type": "string"}}}}}
    return html | _refusals(refusals)


def form_responses(*refusals: HTTPStatus) -> dict[int | str, dict[str, Any]]:
    """Describe for OpenAPI what a form leads to: JSON for a program, another page for a browser, or a refusal."""
    seen = {HTTPStatus.SEE_OTHER.value: {"description": "A browser is sent to the page that shows the outcome."}}
    return seen | _refusals((HTTPStatus.FORBIDDEN, *refusals))


def _refusals(statuses: tuple[HTTPStatus, ...]) -> dict[int | str, dict[str, Any]]:
    return {status.value: {"model": Refusal, "description": status.phrase} for status in statuses}
