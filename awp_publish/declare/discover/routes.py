"""`Route` and `Operation`: the facts that discovery reads from any framework."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from awp_publish.model import Arrival, JsonObject, Parameter, RouteCredential
from awp_publish.schema.media import FORM, MULTIPART
from awp_publish.schema.paths import PLACEHOLDER, pattern_of

ROUTES_METHOD: Final = "awp_routes"
"""A method without arguments that returns the `Route`s of an application, in order."""

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
"""Methods that perform actions; HEAD, OPTIONS and TRACE only ask about a resource."""

NO_BODY_METHODS: Final = frozenset({"GET", "DELETE"})
FORM_TYPES: Final = (FORM, MULTIPART)


@dataclass(frozen=True, slots=True)
class Operation:
    """The inputs and outputs of one method of a route, as its framework knows them.

    `parameters` say where each input is sent; `content_type` is the body's media type, None without a body.
    `description` was written for the operation, `summary` may only be its name in words. `answers_json` is True only if
    every success is known to be JSON, whatever the request accepts. `answer_headers` are headers of a success that the
    framework's description names. `outputs_vary` means that the framework describes answers and does not check them.
    """

    inputs: JsonObject
    outputs: JsonObject
    parameters: tuple[Parameter, ...] = ()
    content_type: str | None = None
    success_status: int = 200
    description: str | None = None
    summary: str | None = None
    operation_id: str | None = None
    auth_required: bool = False
    scopes: tuple[str, ...] = ()
    credentials: tuple[RouteCredential, ...] = ()
    answers_json: bool = False
    security: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    schemes: Mapping[str, JsonObject] = field(default_factory=dict)
    answer_headers: tuple[str, ...] = ()
    outputs_vary: bool = False


@dataclass(frozen=True, slots=True)
class Route:
    """One path of the application, and its handlers.

    `path` is the template from the application's root, with the framework's convertors (`/files/{name:path}`).
    `name` is what a person calls it, `aliases` are the framework's other names for it (its operation id).
    `handlers` are what a declaration may decorate: the endpoint, and for a class endpoint the method and the class.
    `describe(method)` reads the framework's own schema; it is None for frameworks that have none. `understand(kind,
    method, mode)` reads declared inputs or outputs of the framework's own kinds, such as a form class; it returns None
    for all others. `arrival` is where the application's own routing ends for requests to this route.

    `host` is the pattern of the hosts that the route is for, "" for all.

    `rehearse(method)` creates a hidden route that has the security of this one and does nothing, and returns its
    endpoint; None if there is no security to rehearse.

    The rest is for `site.include()`: `mount` is the path of the mounted application that the route belongs to, "" for
    the outermost one. `reads` says whether its GET changes nothing; None if only its methods tell. `is_page` says
    whether its GET answers with HTML; None if only the handler tells. `redirects` is True if it does nothing else,
    False if only the handler tells. `kept_out` is the reason why it becomes an action only if it is named ("it signs
    people in or out", "it is part of the admin panel"), "" for all others. A route that `is_deprecated` is left out in
    the same way, and its description says so. `usual_method` is the one that is meant by the name of a handler that
    takes all methods.
    """

    path: str
    methods: tuple[str, ...]
    handlers: tuple[object, ...]
    name: str
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    listed: bool = True
    describe: Callable[[str], Operation] | None = field(default=None, compare=False)
    understand: "Callable[[object, str, Mode], Operation | None] | None" = field(default=None, compare=False)
    arrival: Arrival | None = field(default=None, compare=False)
    mount: str = ""
    reads: bool | None = None
    is_page: bool | None = None
    redirects: bool = False
    kept_out: str = ""
    is_deprecated: bool = False
    usual_method: str = ""
    host: str = ""
    rehearse: Callable[[str], object] | None = field(default=None, compare=False)

    @property
    def is_opaque(self) -> bool:
        """True if it only stands for a mounted application that hides its routes."""
        return not self.handlers

    def takes(self, method: str, path: str) -> bool:
        """Return True if this route takes a request with this method and path, or path template."""
        return method in self.methods and re.fullmatch(pattern_of(self.path), path) is not None

    @property
    def template(self) -> str:
        """The path as OpenAPI and our documents write it: `/files/{name}`."""
        return PLACEHOLDER.sub(r"{\1}", self.path) if "{" in self.path else self.path


Mode: TypeAlias = Literal["validation", "serialization"]


def opaque(prefix: str) -> Route:
    """Return the route that stands for an application that hides its routes."""
    return Route(prefix + "{anything:path}", METHODS, (), "", listed=False)


def methods_of(methods: object) -> tuple[str, ...]:
    """Return the methods of a route that perform actions; a route without methods takes all of them."""
    allowed = methods if isinstance(methods, (set, frozenset, list, tuple)) else METHODS
    return tuple(method for method in METHODS if method in allowed)


def path_parameters(path: str) -> dict[str, str]:
    """Return the names of a template's placeholders with their convertors ("str" by default)."""
    return {name: convertor or "str" for name, convertor in PLACEHOLDER.findall(path)} if "{" in path else {}


SIGN_IN: Final = frozenset({"login", "logon", "signin"})
"""Names of the last part of a sign-in page's address, without hyphens."""


def has_sign_in_name(path: str) -> bool:
    """Return True if a path ends with a name of sign-in pages."""
    return path.strip("/").rpartition("/")[2].lower().replace("_", "").replace("-", "") in SIGN_IN
