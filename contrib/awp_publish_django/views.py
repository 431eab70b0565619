"""The handlers behind a URL pattern: a function with the methods it is restricted to, or the methods of a class."""

import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any, Final

from django.views.generic.edit import ProcessFormView

from awp_publish.declare.discover.handlers import MARK
from awp_publish.declare.discover.routes import METHODS, methods_of
from awp_publish.schema.handlers import FRAMEWORKS, docstring_of, is_of_framework, layers_of
from awp_publish_django.callers import make_stranger
from awp_publish_django.conf import place_of_middleware

RESTRICTION: Final = "request_method_list"
"""The closure variable in which Django's require_http_methods keeps its methods; it shows them nowhere else."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """One way to call what is behind a URL.

    `handlers` are the functions and classes that a declaration may be attached to; `cls` is a view class, and
    `operation` one of django-ninja.
    """

    methods: tuple[str, ...]
    handlers: tuple[object, ...]
    name: str
    description: str | None
    callback: object
    cls: type | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    operation: object = None
    action: str = ""  # of a viewset

    @property
    def reads(self) -> bool:
        """Return True if its GET is known to change nothing: it allows GET alone, or has a method for GET.

        A function without a restriction may do anything on GET, and a view with a form only prepares a change.
        """
        if "GET" not in self.methods:
            return False
        if self.cls is None or self.operation is not None:
            return self.methods == ("GET",) or self.operation is not None
        if any(base.__name__ in FORM_VIEWS and base.__module__.startswith("django.") for base in self.cls.__mro__):
            return False
        got, is_rest = self.handlers[0], hasattr(self.cls, "renderer_classes")  # of @api_view each method is the same
        return "post" not in _names_in(got) and (is_rest or got is not getattr(self.cls, "post", None))

    @property
    def usual_method(self) -> str:
        """Return the method that is meant by the name of a function that takes all: POST if it reads or asks for it."""
        if self.operation is not None or self.methods != METHODS:
            return ""
        names, texts = _names_in(self.handlers[0]), _texts_in(self.handlers[0])
        return "POST" if "POST" in names or ("method" in names and "POST" in texts) else "GET"

    @property
    def shows_form(self) -> bool:
        """Return True if its GET shows the form that it takes: it has a method for GET, or looks at the method."""
        if self.operation is not None or "GET" not in _restricted(self.callback) or "POST" not in self.methods:
            return False
        if self.cls is None:
            return "method" in _names_in(self.handlers[0])
        is_allowed = "get" in getattr(self.cls, "http_method_names", ())
        return is_allowed and hasattr(self.cls, "get") and not hasattr(self.cls, "renderer_classes")

    @property
    def is_page(self) -> bool:
        """Return True if its GET answers with HTML, as far as its class, its annotation or its code tell."""
        if self.operation is not None:
            return False
        cls: Any = self.cls
        if hasattr(cls, "renderer_classes"):
            renderers: Any = self.options.get("renderer_classes") or cls.renderer_classes
            first = next(iter(renderers or ()), None)  # a view of REST framework's own schema has None until it is made
            return "html" in str(getattr(first, "media_type", ""))
        if hasattr(cls, "template_name") and hasattr(cls, "render_to_response"):
            written = inspect.getattr_static(cls, "render_to_response")
            is_own = not written.__module__.startswith("django.")
            return _answers_html(self.handlers[0], written, makes_page=not is_own)
        return _answers_html(self.handlers[0])

    @property
    def auth_required(self) -> bool:
        """Return True if it answers authenticated callers only: by decorators, mixins or LoginRequiredMiddleware."""
        layers = [layer for handler in self.handlers for layer in layers_of(handler)]
        if self.cls is not None:
            layers += layers_of(getattr(self.cls, "dispatch", None))
            if any((base.__module__, base.__name__) == ACCESS_MIXIN for base in self.cls.__mro__):
                return True
        if any(_refuses_strangers(layer) for layer in layers):
            return True
        is_required = bool(getattr(self.callback, "login_required", True))
        return is_required and place_of_middleware(LOGIN_REQUIRED) is not None

    @property
    def kept_out(self) -> str:
        """The reason why it is not published unless it is named, "" if there is none."""
        modules = {str(getattr(layer, "__module__", "")) for handler in self.handlers for layer in layers_of(handler)}
        modules |= {base.__module__ for base in getattr(self.cls, "__mro__", ())}
        for names, why in KNOWN.items():
            if any(f"{module}.".startswith(tuple(f"{name}." for name in names)) for module in modules):
                return why
        if any(base.__name__ == "RedirectView" for base in getattr(self.cls, "__mro__", ())):
            return "it only redirects"
        if hasattr(self.cls, "renderer_classes"):
            from awp_publish_django.rest_framework import is_hidden

            return "it is hidden (schema = None, or exclude=True)" if is_hidden(self) else ""
        return ""


ACCESS_MIXIN: Final = ("django.contrib.auth.mixins", "AccessMixin")
LOGIN_REQUIRED: Final = "django.contrib.auth.middleware.LoginRequiredMiddleware"


def _refuses_strangers(layer: object) -> bool:
    """Return True if this layer is `user_passes_test`, on which Django's own decorators are built, and refuses them.

    `method_decorator` applies its decorators only when a request comes, so they are found in its closure.
    """
    if not inspect.isfunction(layer):
        return False
    names = layer.__code__.co_freevars
    if "test_func" not in names and "decorators" not in names:
        return False
    closure = inspect.getclosurevars(layer).nonlocals
    if "test_func" in closure and "django" in layer.__code__.co_filename:
        try:
            return not closure["test_func"](make_stranger())
        except Exception:  # PermissionDenied, or somebody's own test looks at a user's profile
            return True
    listed = closure.get("decorators", ())
    for decorate in listed if isinstance(listed, (list, tuple)) else ():
        with suppress(Exception):
            if any(map(_refuses_strangers, layers_of(decorate(_nothing)))):
                return True
    return False


def _nothing(request: object, *args: object, **kwargs: object) -> None:
    """A view to be decorated."""


FORM_VIEWS: Final = frozenset({"FormMixin", "ProcessFormView", "DeletionMixin", "LogoutView"})
"""Django's classes of views that change something; their GET shows a form or asks for confirmation."""

PAGE_MAKERS: Final = frozenset({"render", "render_to_string", "TemplateResponse", "SimpleTemplateResponse"})
OTHER_MAKERS: Final = frozenset({"FileResponse", "JsonResponse", "StreamingHttpResponse"})
MAX_FUNCTIONS: Final = 50
"""Functions of a project whose code is inspected for one view."""

_MEDIA_TYPE: Final = re.compile(r"(?:application|audio|font|image|text|video)/[\w.+-]+")

KNOWN: Final[Mapping[tuple[str, ...], str]] = {
    (
        "allauth",
        "axes",
        "dj_rest_auth",
        "django.contrib.auth.views",
        "djoser",
        "hijack",
        "knox",
        "mozilla_django_oidc",
        "oauth2_provider",
        "registration",
        "rest_framework.authtoken",
        "rest_framework_simplejwt",
        "social_django",
        "two_factor",
    ): "it signs people in or out, or belongs to a user account",
    (
        "django.contrib.staticfiles.views",
        "django.views.static",
        "wagtail.documents.views.serve",
        "wagtail.images.views.serve",
        "whitenoise",
    ): "these are static files",
    (
        "constance",
        "debug_toolbar",
        "django.contrib.admin",
        "django.contrib.admindocs",
        "django_rq",
        "explorer",
        "filebrowser",
        "grappelli",
        "rosetta",
        "silk",
        "wagtail.admin",
    ): "it is part of the admin",
    (
        "django.contrib.sitemaps",
        "django.contrib.syndication",
        "django.views.i18n",
        "drf_spectacular",
        "drf_yasg",
        "rest_framework.routers",
        "rest_framework.schemas",
        "wagtail.contrib.sitemaps",
    ): "it is for programs: a feed, a site map, an API description or a translation",
}
"""Modules whose views, and the classes that extend them, are not published unless they are named."""


def _names_in(handler: object) -> set[str]:
    """The names that the innermost function of a handler mentions."""
    code = _code_of(handler)
    return set(code.co_names) if code is not None else set()


def _texts_in(handler: object) -> set[object]:
    """The constants that the innermost function of a handler mentions, those in tuples and sets too."""
    code = _code_of(handler)
    constants = code.co_consts if code is not None else ()
    listed = [constant if isinstance(constant, (tuple, frozenset)) else (constant,) for constant in constants]
    return {item for items in listed for item in items}


def _code_of(handler: object) -> CodeType | None:
    functions = [layer for layer in layers_of(handler) if inspect.isfunction(layer)]
    return functions[-1].__code__ if functions else None


def _answers_html(*handlers: object, makes_page: bool = False) -> bool:
    """Return True if functions make pages: by their annotations, else by their code, else by that of what they call.

    A plain HttpResponse is HTML unless its content type is given (Django's DEFAULT_CONTENT_TYPE).
    """
    layers = ([layer for layer in layers_of(handler) if inspect.isfunction(layer)] for handler in handlers)
    level = [functions[-1] for functions in layers if functions]
    words = set(re.findall(r"\w+", " ".join(str(function.__annotations__.get("return", "")) for function in level)))
    words.discard("HttpResponse")  # whatever it is of
    seen: set[CodeType] = set()
    while level and len(seen) < MAX_FUNCTIONS:
        names, texts = words, set[object]()
        below: list[FunctionType] = []
        for function in level:
            codes = [function.__code__] if function.__code__ not in seen else []
            while codes:
                code = codes.pop()
                seen.add(code)
                names |= set(code.co_names)
                codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
                texts |= {
                    word
                    for constant in code.co_consts
                    for word in (constant if isinstance(constant, tuple) else (constant,))
                }
                for name in code.co_names:
                    helper = function.__globals__.get(name)
                    if inspect.isfunction(helper) and not f"{helper.__module__}.".startswith(FRAMEWORKS):
                        below.append(helper)
        if not names.isdisjoint(OTHER_MAKERS):
            return False
        if makes_page or not names.isdisjoint(PAGE_MAKERS):
            return True
        if "HttpResponse" in names:
            kinds = {word for word in texts if isinstance(word, str) and _MEDIA_TYPE.match(word)}
            return any("html" in kind for kind in kinds) or not (kinds or "content_type" in texts or "dumps" in names)
        level, words = below, set()
    return makes_page


def read_views(callback: object) -> Iterator[View]:
    """The views of a URL pattern: one, or one for each method of a class or operation of django-ninja."""
    if "ninja.operation" in sys.modules:
        operations = list(_ninja_views(callback))
        if operations:
            yield from operations
            return
    cls = next((kind for kind in map(_class_of, layers_of(callback)) if kind is not None), None)
    if cls is None:
        name = getattr(callback, "__name__", type(callback).__name__)
        yield View(_restricted(callback), (callback,), name, _description(callback), callback)
    else:
        yield from _class_views(callback, cls)


def _class_views(callback: object, cls: type) -> Iterator[View]:
    allowed = _restricted(callback)
    for method, function_name in _class_methods(callback, cls):
        function = getattr(cls, function_name, None)
        # Django parses the form of a POST alone: the PUT that it gives to views of forms refuses whatever is sent.
        if function in (None, ProcessFormView.put) or method not in allowed:
            continue
        inner = _function_of_api_view(function)
        behind = tuple(layer for layer in (function, inner, cls) if layer is not None)
        described = next((text for text in map(_description, behind) if text), None)
        marked = (*_marked_functions_of(function), *_marked_functions_of(getattr(cls, "dispatch", None)))
        handlers = (*behind, callback, *marked)
        of_set = function_name if function_name != method.lower() else ""
        yield View((method,), handlers, cls.__name__, described, callback, cls, _options(callback), action=of_set)


def _function_of_api_view(function: object) -> object:
    if "rest_framework.views" not in sys.modules:
        return None
    from awp_publish_django.rest_framework import wrapped_function

    return wrapped_function(function)


def _ninja_views(callback: object) -> Iterator[View]:
    from awp_publish_django.ninja import operations_of

    for listed, operation in operations_of(callback):
        function = operation.view_func
        name = getattr(function, "__name__", "")
        yield View(methods_of(listed), (function,), name, _description(function), callback, operation=operation)


def _class_of(layer: object) -> type | None:
    """The class of `as_view()`: Django's own attribute, or Django REST framework's."""
    cls = getattr(layer, "view_class", None) or getattr(layer, "cls", None)
    return cls if isinstance(cls, type) else None


def _class_methods(callback: object, cls: type) -> Iterator[tuple[str, str]]:
    """HTTP methods and the names of the functions behind them; viewsets name theirs (`{"get": "list"}`)."""
    actions = next((mapping for layer in layers_of(callback) if (mapping := getattr(layer, "actions", None))), None)
    names = actions if isinstance(actions, Mapping) else {method.lower(): method.lower() for method in METHODS}
    allowed = getattr(cls, "http_method_names", list(names))
    for method in METHODS:
        if method.lower() in names and method.lower() in allowed:
            yield method, names[method.lower()]


def _options(callback: object) -> Mapping[str, object]:
    """Return what was given to `as_view(...)`."""
    for layer in layers_of(callback):
        for name in ("view_initkwargs", "initkwargs"):
            initkwargs = getattr(layer, name, None)
            if isinstance(initkwargs, Mapping):
                return initkwargs
    return {}


def _restricted(callback: object) -> tuple[str, ...]:
    """The methods that decorators allow; all of them without any."""
    allowed: tuple[str, ...] = METHODS
    for layer in layers_of(callback):
        if inspect.isfunction(layer) and RESTRICTION in layer.__code__.co_freevars:
            listed = inspect.getclosurevars(layer).nonlocals[RESTRICTION]
            allowed = tuple(method for method in allowed if method in methods_of(listed))
    return allowed


def _description(handler: object) -> str | None:
    *_, inner = layers_of(handler)
    return None if is_of_framework(inner) else docstring_of(handler)


def _marked_functions_of(handler: object) -> Iterator[object]:
    """Yield the functions whose declarations marked this handler."""
    for layer in layers_of(handler):
        attributes = getattr(layer, "__dict__", {})
        yield from (function for name, function in attributes.items() if name.startswith(MARK))
