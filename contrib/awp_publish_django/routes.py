"""The routes of a URLconf: include, namespaces, converters, regular expressions, language prefixes."""

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import translation

from awp_publish.declare.discover.declared import describe_by_path
from awp_publish.declare.discover.handlers import answers_json
from awp_publish.declare.discover.routes import Operation, Route
from awp_publish.model import IN_ANOTHER_FORMAT, Arrival, JsonObject
from awp_publish.schema import UnusableSchema, reason_of
from awp_publish_django.kinds import describe_view, understand
from awp_publish_django.languages import default_language
from awp_publish_django.patterns import read_pattern
from awp_publish_django.reading import reads_of
from awp_publish_django.views import View, read_views

ADMINS: Final = frozenset(
    {"admin", "wagtail.admin.urls", "grappelli.urls", "rosetta.urls", "silk.urls", "django_rq.urls"}
)
"""Administration: applications by their name in URLs, and modules of URLs. Below them everything belongs to it."""

_FORMAT: Final = re.compile(r"\.?{format}/?$")
"""Ends of the REST framework's addresses that say a format (`format_suffix_patterns`, `DefaultRouter`)."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A place on the way down the URLconf."""

    path: str = "/"
    route: str = ""
    schemas: Mapping[str, JsonObject] = field(default_factory=dict)
    namespaces: tuple[str, ...] = ()
    is_admin: bool = False

    def below(self, pattern: object) -> "_Place":
        piece = read_pattern(pattern, sum(name.startswith("_") and name[1:].isdigit() for name in self.schemas))
        text = str(pattern)
        route = self.route + text.removeprefix("^") if self.route else text  # as ResolverMatch.route tells it
        return replace(self, path=self.path + piece.template, route=route, schemas={**self.schemas, **piece.schemas})

    def named_as(self, callback: Callable[..., object]) -> "_Place":
        """Return the place with the names of the view's parameters for the unnamed groups of the expression."""
        unnamed = [name for name in self.schemas if name.startswith("_") and name[1:].isdigit()]
        try:
            parameters = inspect.signature(callback).parameters.values()
        except (TypeError, ValueError):  # of what is written in C
            return self
        positional = [parameter.name for parameter in parameters if parameter.kind in _POSITIONAL]
        names = dict(zip(unnamed, positional[1:], strict=False))
        if not names.keys() >= set(unnamed) or not self.schemas.keys().isdisjoint(names.values()):
            return self
        path = re.sub(r"{(_\d+)\b", lambda match: "{" + names.get(match[1], match[1]), self.path)
        return replace(
            self, path=path, schemas={names.get(name, name): schema for name, schema in self.schemas.items()}
        )


_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def find_django_routes(urlconf: object = None) -> list[Route]:
    """Every route, in the order in which Django tries them; with language prefixes those of settings.LANGUAGE_CODE."""
    with translation.override(default_language()):
        # The first of equal patterns is the one that Django takes; django-ninja makes one for each operation.
        by_key: dict[object, Route] = {}
        for route in _walk(get_resolver(urlconf).url_patterns, _Place()):  # type: ignore[arg-type]
            by_key.setdefault((route.path, route.methods, *map(id, route.handlers)), route)
    routes: list[Route] = []
    first: dict[str, object] = {}  # view at an address without placeholders, beyond which Django does not look
    for route in by_key.values():
        endpoint = route.arrival.endpoint if route.arrival is not None else None
        if "{" not in route.template and first.setdefault(route.template, endpoint) is not endpoint:
            route = replace(route, kept_out="a view before it has the same address")
        # A route that is another one in a format of the caller's choice stands for no declaration; it can be named.
        plain, kind = _FORMAT.sub("", route.template), (route.methods, route.handlers)
        if plain != route.template:
            twins = (route.template for route in by_key.values() if (route.methods, route.handlers) == kind)
            if twin := next((template for template in twins if template in (plain, f"{plain}/")), None):
                route = replace(route, handlers=(route.arrival,), kept_out=f"it is {twin} {IN_ANOTHER_FORMAT}")
        routes.append(route)
    times = Counter(_unqualified(route.name) for route in routes)
    return [
        replace(route, aliases=(*route.aliases, short))
        if (short := _unqualified(route.name)) != route.name and times[short] == 1
        else route
        for route in routes
    ]


def _unqualified(name: str) -> str:
    """Return a name without its namespaces, by which people know the operations of an API."""
    return name.rpartition(":")[2]


def _walk(patterns: Sequence[Any], place: _Place) -> Iterator[Route]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            below = place.below(pattern.pattern)
            names = (*place.namespaces, *((pattern.namespace,) if pattern.namespace else ()))
            module = getattr(pattern.urlconf_name, "__name__", pattern.urlconf_name)
            is_admin = place.is_admin or pattern.app_name in ADMINS or (isinstance(module, str) and module in ADMINS)
            yield from _walk(pattern.url_patterns, replace(below, namespaces=names, is_admin=is_admin))
        elif not hasattr(pattern, "answers_agents"):
            yield from _read(pattern, place.below(pattern.pattern).named_as(pattern.callback))


def _read(pattern: URLPattern, place: _Place) -> Iterator[Route]:
    views = list(read_views(pattern.callback))
    for view in views:
        facts = _facts_of(view, place)
        is_named = view.operation is not None  # after its function, whatever the pattern is called
        name = ":".join((*place.namespaces, view.name if is_named else pattern.name or view.name))
        yield Route(
            path=place.path,
            methods=view.methods,
            handlers=view.handlers,
            name=name if is_named or len(views) == 1 else f"{name}_{view.methods[0].lower()}",
            aliases=(name,),
            listed=not place.is_admin,
            describe=partial(_describe, view, place),
            **facts,
            # django-ninja makes a view for each operation of a path, of which Django calls the first for all.
            arrival=Arrival(place.route, None if is_named else pattern.callback),
        )


def _facts_of(view: View, place: _Place) -> dict[str, Any]:
    """Return what the class or the code of a view tells; of one that cannot be read, that it is left out."""
    try:
        return {
            "reads": view.reads,
            "is_page": view.is_page,
            "usual_method": view.usual_method,
            "kept_out": "it is part of the admin" if place.is_admin else view.kept_out,
            "understand": partial(understand, on_page=view.shows_form, changes=bool(place.schemas)),
        }
    except Exception as error:  # somebody's own class may do anything when it is asked
        return {"kept_out": f"its view cannot be read: {reason_of(error)}", "understand": understand}


def _describe(view: View, place: _Place, method: str) -> Operation:
    """Return what the view itself says of its inputs, or else those of its path. Raises UnusableSchema."""
    try:
        return _described(view, place, method)
    except UnusableSchema:
        raise
    except Exception as error:
        raise UnusableSchema(f"{view.name} cannot be read: {reason_of(error)}") from error


def _described(view: View, place: _Place, method: str) -> Operation:
    operation = describe_by_path(place.path, view.description)
    says_json = any(answers_json(handler) is True for handler in view.handlers)
    inputs: JsonObject = {**operation.inputs, "properties": {**place.schemas}}
    reads = reads_of(view.handlers) if method == "GET" and view.operation is None else None
    if reads is not None and (
        reads.query or reads.more_of_query
    ):  # what it may take is not known, so nothing is refused
        inputs = {name: fact for name, fact in inputs.items() if name != "additionalProperties"}
    operation = replace(operation, inputs=inputs, answers_json=says_json)
    described = describe_view(view, method, place.path, operation)
    return replace(described, auth_required=described.auth_required or view.auth_required)
