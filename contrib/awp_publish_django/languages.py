"""Language prefixes (i18n_patterns): a call's own path says its language, whatever the caller's request was made in."""

from contextlib import AbstractContextManager, nullcontext

from django.conf import settings
from django.conf.urls.i18n import is_language_prefix_patterns_used
from django.http import HttpRequest
from django.utils import translation


def speaking(request: HttpRequest) -> AbstractContextManager[None]:
    """A context in which the language is that of the request's path, where paths have languages."""
    urlconf = getattr(request, "urlconf", settings.ROOT_URLCONF)
    if not settings.USE_I18N or not is_language_prefix_patterns_used(urlconf)[0]:
        return nullcontext()
    language = translation.get_language_from_path(request.path_info) or settings.LANGUAGE_CODE
    request.LANGUAGE_CODE = language
    return translation.override(language)
