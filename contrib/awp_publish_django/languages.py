"""Language prefixes (i18n_patterns): a call's own path says its language, else the caller's request does."""

from contextlib import AbstractContextManager, nullcontext
from typing import Final

from django.conf import settings
from django.conf.urls.i18n import is_language_prefix_patterns_used
from django.http import HttpRequest
from django.utils import translation
from django.utils.translation import get_supported_language_variant

LOCALES: Final = "django.middleware.locale.LocaleMiddleware"


def default_language() -> str:
    """The language whose paths are published: that of LANGUAGE_CODE, as the URLs spell it (`en` for `en-us`)."""
    try:
        return str(get_supported_language_variant(settings.LANGUAGE_CODE))
    except LookupError:
        return str(settings.LANGUAGE_CODE)


def speaking(request: HttpRequest) -> AbstractContextManager[None]:
    """A context in which the language is what LocaleMiddleware would make of the request."""
    urlconf = getattr(request, "urlconf", settings.ROOT_URLCONF)
    if not settings.USE_I18N:
        return nullcontext()
    is_used, has_default_prefix = is_language_prefix_patterns_used(urlconf)
    language = translation.get_language_from_path(request.path_info) if is_used else None
    if language is None and is_used and not has_default_prefix:
        language = default_language()
    if language is None and LOCALES in settings.MIDDLEWARE:
        language = translation.get_language_from_request(request)
    if language is None:
        return nullcontext()
    request.LANGUAGE_CODE = language
    return translation.override(language)
