"""The setting AWP_PUBLISH, read in one place.

AWP_PUBLISH = {
    "SITE": "shop.agents.site",   # where the Site is; required
    "LINK_HEADERS": False,        # whether HTML pages get a Link header that points at the documents
    "RECENT_CALLS": 1000,         # how many calls are kept for the admin; 0 without the admin
}
"""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from awp_publish import Site

NAME: Final = "AWP_PUBLISH"
KINDS: Final[Mapping[str, type]] = {"SITE": str, "LINK_HEADERS": bool, "RECENT_CALLS": int}
RECENT_CALLS: Final = 1000


@dataclass(frozen=True, slots=True)
class Settings:
    """What the project says."""

    site: str
    link_headers: bool = False
    recent_calls: int = 0


def read_settings() -> Settings:
    """The project's settings. Raises ImproperlyConfigured that names what is wrong."""
    given = getattr(settings, NAME, None)
    if not isinstance(given, Mapping):
        raise ImproperlyConfigured(f'{NAME} is not set. Write {NAME} = {{"SITE": "shop.agents.site"}}.')
    for name, value in given.items():
        if name not in KINDS:
            near = "".join(f" Do you mean {match}?" for match in get_close_matches(str(name), KINDS, n=1))
            raise ImproperlyConfigured(f"{NAME} has {name!r}, which is not known here.{near}")
        if not isinstance(value, KINDS[name]) or isinstance(value, bool) is not (KINDS[name] is bool):
            raise ImproperlyConfigured(f"{NAME}[{name!r}] is {value!r}, which is no {KINDS[name].__name__}.")
    if "SITE" not in given:
        raise ImproperlyConfigured(f'{NAME} has no "SITE": the dotted path of your Site.')
    kept = given.get("RECENT_CALLS", RECENT_CALLS if apps.is_installed("django.contrib.admin") else 0)
    if kept < 0:
        raise ImproperlyConfigured(f"{NAME}['RECENT_CALLS'] is {kept}, which is less than none.")
    return Settings(given["SITE"], given.get("LINK_HEADERS", False), kept)


def load_site(options: Settings) -> Site:
    """The site that the settings name. Raises ImproperlyConfigured, or what its module raises."""
    try:
        found = import_string(options.site)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and not _is_about(error, options.site):
            raise
        raise ImproperlyConfigured(f'{NAME}["SITE"] is {options.site!r}: {error}.') from error
    if not isinstance(found, Site):
        raise ImproperlyConfigured(f'{NAME}["SITE"] is {options.site!r}, which is a {type(found).__name__}, no Site.')
    return found


def _is_about(error: ModuleNotFoundError, path: str) -> bool:
    """Whether it is the named module that is missing, and not one that it imports."""
    return error.name is not None and f"{path}.".startswith(f"{error.name}.")
