"""One HTTP door: preflights, request ids, methods and the origin of a browser's page, before and around a request."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable
from typing import ClassVar

from awp_publish.http.body import ClientDisconnect
from awp_publish.http.cors import Cors
from awp_publish.http.exchange import Fields, Receive, Scope, Send, send_reply
from awp_publish.http.origins import refuse_foreign_pages
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.http.request import DoorRequest
from awp_publish.problems import MethodNotAllowed, Problem


class Endpoint(ABC):
    """Base class of the HTTP doors.

    Before `handle`, it answers preflights, assigns the request id, and checks the method and the origin of a browser's
    page. Afterwards it renders a problem that `handle` has raised.
    """

    methods: str
    """The value of the `Allow` header. OPTIONS is answered here."""

    usage: str
    """The beginning of the error text for other methods: "<usage>, not PUT."."""

    request_type: ClassVar[type[DoorRequest]] = DoorRequest
    """The class of the requests that `handle` gets."""

    def __init__(self, renderer: ProblemRenderer, cors: Cors, own_origins: frozenset[str]) -> None:
        self._renderer = renderer
        self._cors = cors
        self._own_origins = own_origins
        methods = frozenset(self.methods.split(", "))
        self._make_request = self.request_type
        self._allowed, self._takes_head = methods - {"HEAD", "OPTIONS"}, "HEAD" in methods

    @abstractmethod
    async def handle(self, request: DoorRequest, named: str | None) -> None:
        """Answer a request with an allowed method. Raises a Problem, which becomes the answer, or ClientDisconnect."""

    @staticmethod
    def refuse_foreign(fields: Fields, own_origins: frozenset[str]) -> None:
        """Refuse a request from another site's page. Called only for requests with one of BROWSER_FIELDS."""
        refuse_foreign_pages(fields, own_origins)

    def note_refusal(self, request: DoorRequest, problem: Problem) -> None:
        """Record that `handle` has raised a problem. Most doors do not."""
        return

    def __call__(self, scope: Scope, receive: Receive, send: Send, named: str | None = None) -> Awaitable[None]:
        """Answer one request. `named` is the agent or job that its URL names, if any."""
        return self.answer(named, scope, receive, send)

    async def answer(self, named: str | None, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, with `named` first so that doors can bind it."""
        make = self._make_request
        request, method = make(self._renderer, self._cors, scope, receive, send), scope["method"]
        try:
            if method not in self._allowed:
                if method == "OPTIONS":
                    await send_reply(self._cors.preflight(request.fields, self.methods), send)
                    return
                if method == "HEAD":
                    request.drop_content()
                if method != "HEAD" or not self._takes_head:
                    raise MethodNotAllowed(f"{self.usage}, not {method[:20]}.", headers=[("Allow", self.methods)])
            if request.is_of_browser:
                self.refuse_foreign(request.fields, self._own_origins)
            await self.handle(request, named)
        except ClientDisconnect:
            return
        except Problem as problem:
            self.note_refusal(request, problem)
            await request.deliver(problem)
