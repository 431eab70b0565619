"""Language prefixes (i18n_patterns): the caller's Accept-Language holds where it can, else the published path."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final
from urllib.parse import quote

from django.conf import settings
from django.conf.urls.i18n import is_language_prefix_patterns_used
from django.http import HttpRequest
from django.urls import Resolver404, get_resolver
from django.utils import translation

from awp_publish.http.exchange import Scope, read_fields
from awp_publish.model import SAFE_IN_PATH
from awp_publish_django.conf import place_of_middleware

LOCALES: Final = "django.middleware.locale.LocaleMiddleware"


def default_language() -> str:
    """The language whose paths are published: that of LANGUAGE_CODE, as the URLs spell it (`en` for `en-us`)."""
    return translation.get_language_from_request(HttpRequest())  # of somebody who asks for none


def in_language_of_caller(scope: Scope, urlconf: Any = None) -> tuple[Scope, tuple[str, str] | None]:
    """A call of a route of i18n_patterns, in the language that its caller accepts instead of the published one.

    Beside the scope there are the prefixes, that of the caller's language and the published one, where they differ.
    """
    header = read_fields(scope["headers"]).get(b"accept-language", b"")
    is_used, has_default_prefix = is_language_prefix_patterns_used(urlconf or settings.ROOT_URLCONF)
    if not header or not is_used or not settings.USE_I18N or place_of_middleware(LOCALES) is None:
        return scope, None
    asking = HttpRequest()
    asking.META["HTTP_ACCEPT_LANGUAGE"] = header.decode("latin-1")
    default, accepted = default_language(), translation.get_language_from_request(asking)
    root = str(scope.get("root_path", ""))
    path = str(scope["path"]).removeprefix(root)
    published, spoken = f"{default}/" if has_default_prefix else "", f"{accepted}/"
    if accepted == default or not path.startswith(f"/{published}"):
        return scope, None
    there = f"/{spoken}{path[1 + len(published) :]}"
    resolver = get_resolver(urlconf)
    try:
        with translation.override(default):
            own = resolver.resolve(path)
        with translation.override(accepted):
            match = resolver.resolve(there)
    except Resolver404:
        return scope, None
    if match.func is not own.func or match.route != spoken + own.route.removeprefix(published):
        return scope, None
    return {**scope, "path": root + there, "raw_path": quote(root + there, safe=SAFE_IN_PATH).encode()}, (
        spoken,
        published,
    )


def speaking(request: HttpRequest) -> AbstractContextManager[None]:
    """A context in which the language is what LocaleMiddleware would make of the request."""
    urlconf = getattr(request, "urlconf", settings.ROOT_URLCONF)
    if not settings.USE_I18N:
        return nullcontext()
    is_used, has_default_prefix = is_language_prefix_patterns_used(urlconf)
    language = translation.get_language_from_path(request.path_info) if is_used else None
    if language is None and is_used and not has_default_prefix:
        language = default_language()
    if language is None and place_of_middleware(LOCALES) is not None:
        language = translation.get_language_from_request(request)
    if language is None:
        return nullcontext()
    request.LANGUAGE_CODE = language
    return translation.override(language)
