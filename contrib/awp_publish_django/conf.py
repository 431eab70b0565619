"""The setting AWP_PUBLISH, read in one place.

AWP_PUBLISH = {
    "SITE": "shop.agents.site",   # where the Site is; required
    "URL": "https://...",         # in place of the site's own: its address or addresses,
    "STORE": "django",            #   its store, of which "django" is this project's database,
    "PLUGINS": ["mcp"],           #   its doors and other features
    "TRUST_OUTER_MIDDLEWARE": True,  # no middleware above ours decides by the path: calls need not pass it again
    "LINK_HEADERS": False,        # no Link header that points at the documents; True: for JSON too, not for HTML alone
    "RECENT_CALLS": 1000,         # how many calls are kept for the admin; 0 without the admin
    "AUTODISCOVER": False,        # whether agents.py of every installed application is imported
}
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from typing import Final, cast

from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.crypto import salted_hmac
from django.utils.module_loading import import_string

from awp_publish import Site

NAME: Final = "AWP_PUBLISH"
KINDS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "SITE": str,
    "URL": (str, list, tuple),
    "STORE": object,
    "PLUGINS": (list, tuple),
    "TRUST_OUTER_MIDDLEWARE": bool,
    "LINK_HEADERS": bool,
    "RECENT_CALLS": int,
    "AUTODISCOVER": bool,
}
DATABASE: Final = "django"
"""The project's own database as a store."""
RECENT_CALLS: Final = 1000
TEST_HOST: Final = "testserver"
"""The host of requests that Django's own test client makes, unless it is told another one."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of the project."""

    site: str
    overrides: Mapping[str, object] = field(default_factory=dict)
    link_headers: bool | None = None
    trust_outer_middleware: bool = False
    recent_calls: int = 0
    keeps_by_default: bool = False
    """Whether recent calls are kept because nothing is said of them."""


def read_settings() -> Settings:
    """The project's settings. Raises ImproperlyConfigured that names what is wrong."""
    options = getattr(settings, NAME, None)
    if not isinstance(options, Mapping):
        raise ImproperlyConfigured(f'{NAME} is not set. Write {NAME} = {{"SITE": "shop.agents.site"}}.')
    for name, value in options.items():
        if name not in KINDS:
            near = "".join(f" Do you mean {match}?" for match in get_close_matches(str(name).upper(), KINDS, n=1))
            raise ImproperlyConfigured(f"{NAME} has {name!r}, which is not known.{near}")
        if not isinstance(value, KINDS[name]) or isinstance(value, bool) is not (KINDS[name] is bool):
            kind = KINDS[name]
            types = " or ".join(part.__name__ for part in (kind if isinstance(kind, tuple) else (kind,)))
            raise ImproperlyConfigured(f"{NAME}[{name!r}] is {value!r}, not of type {types}.")
    if "SITE" not in options:
        raise ImproperlyConfigured(f'{NAME} has no "SITE": the dotted path of your Site.')
    recent_calls = options.get("RECENT_CALLS", RECENT_CALLS if apps.is_installed("django.contrib.admin") else 0)
    if recent_calls < 0:
        raise ImproperlyConfigured(f"{NAME}['RECENT_CALLS'] is {recent_calls}; it must not be negative.")
    overrides = {name.lower(): options[name] for name in ("URL", "STORE", "PLUGINS") if name in options}
    if overrides.get("store") == DATABASE:
        from awp_publish_django.store import DjangoStore

        overrides["store"] = DjangoStore()
    return Settings(
        options["SITE"],
        overrides,
        options.get("LINK_HEADERS"),
        options.get("TRUST_OUTER_MIDDLEWARE", False),
        recent_calls,
        "RECENT_CALLS" not in options,
    )


def place_of_middleware(dotted_path: str) -> int | None:
    """Return the place in MIDDLEWARE of a class of middleware or of a subclass of it, None if it is not there."""
    return _place_in(tuple(settings.MIDDLEWARE), dotted_path)


@lru_cache(maxsize=64)
def _place_in(names: tuple[str, ...], dotted_path: str) -> int | None:
    if dotted_path in names:
        return names.index(dotted_path)
    kind: object = None
    for place, name in enumerate(names):
        try:
            listed = import_string(name)
            kind = kind or import_string(dotted_path)
        except Exception:  # Django says what is wrong with it when it loads it; of ours, it may be what is being loaded
            continue
        if isinstance(listed, type) and isinstance(kind, type) and issubclass(listed, kind):
            return place
    return None


def url_of_project() -> object:
    """The address that AWP_PUBLISH gives, for a Site that has none of its own."""
    options = getattr(settings, NAME, None) if settings.configured else None
    return options.get("URL") if isinstance(options, Mapping) else None


def load_site(options: Settings) -> Site:
    """Import the site that the settings name. Raises ImproperlyConfigured, or what its module raises."""
    try:
        site = import_string(options.site)
    except ImportError as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else options.site
        if missing is None or not f"{options.site}.".startswith(f"{missing}."):  # a module that the named one imports
            raise
        raise ImproperlyConfigured(f'{NAME}["SITE"] is {options.site!r}: {error}.') from error
    if not isinstance(site, Site):
        raise ImproperlyConfigured(
            f'{NAME}["SITE"] is {options.site!r}, which is of type {type(site).__name__}, not a Site.'
        )
    if not site.is_frozen:
        overrides: dict[str, object] = {}
        if not site.settings.secret_keys:  # derived from the project's, which they do not reveal
            keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
            hashed = (salted_hmac("awp_publish.secret_keys", "", key, algorithm="sha256") for key in keys)
            overrides["secret_keys"] = [digest.hexdigest() for digest in hashed]
        overrides |= options.overrides
        kinds = type(overrides.get("store", site.settings.store)).__mro__
        if is_testing() and any(kind.__name__ == "DjangoStore" for kind in kinds):
            overrides["store"] = "memory:"
        site.override(overrides)
        plugins = cast(Sequence[object], site.settings.plugins)
        if settings.DEBUG and "overview" not in site.plugins and "no:overview" not in plugins:
            site.override({"plugins": [*plugins, "overview"]})
    return site


def is_testing() -> bool:
    """Return True if Django's test runner has set up this process.

    A `TestCase` keeps its database in an open transaction, for which a DjangoStore's own connection would wait.
    """
    return TEST_HOST in settings.ALLOWED_HOSTS  # to which `setup_test_environment` adds it
