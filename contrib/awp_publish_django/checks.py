"""System checks: what is wrong with the settings, the declarations, the middleware and the addresses, with a remedy.

Errors keep the project from starting; warnings are about what works and should not be left so. A missing table is a
warning, since it may be what `migrate` is about to make; before Django 6.1, every error of ours is one to `migrate`.
"""

import traceback
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import urljoin, urlsplit

import django
from django.conf import settings
from django.core.checks import WARNING, CheckMessage, Error, Warning as CheckWarning
from django.core.exceptions import ImproperlyConfigured
from django.db import Error as DatabaseError
from django.http.request import validate_host
from django.urls import Resolver404, ResolverMatch, get_resolver

from awp_publish import ApplicationUser, DeclarationError, SessionUser
from awp_publish.declare.plugins import doors_of
from awp_publish_django.conf import place_of_middleware
from awp_publish_django.publication import LOCAL, MIDDLEWARE, Publication, get_publication
from awp_publish_django.threads import EVENTLET, is_eventlet

TAG: Final = "agents"
SESSIONS: Final = "django.contrib.sessions.middleware.SessionMiddleware"
USERS: Final = "django.contrib.auth.middleware.AuthenticationMiddleware"
UPDATE: Final = "django.middleware.cache.UpdateCacheMiddleware"
FETCH: Final = "django.middleware.cache.FetchFromCacheMiddleware"
CORRECT: Final = "Correct the declaration of that name; see docs/django.md."
TRACEBACK: Final = 'manage.py shell -c "from awp_publish_django import publication; publication.get_publication()"'
URLS: Final = "awp_publish_django.urls"
OTHER: Final = "f3b1"
"""What makes another path of a path, which no project has a view for."""


def check_agents(databases: object = None, **_: object) -> list[CheckMessage]:
    """Run every check; if the site cannot be published, report only the reasons for that."""
    messages: list[CheckMessage]
    try:
        publication = get_publication()
    except ImproperlyConfigured as error:
        messages = [Error(str(error), hint='Set AWP_PUBLISH = {"SITE": "shop.agents.site"}.', id="awp_publish.E001")]
    except DeclarationError as error:
        messages = [
            Error(f"{problem.subject}: {problem.detail}", hint=problem.remedy or CORRECT, id="awp_publish.E002")
            for problem in error.errors
        ]
    except DatabaseError as error:
        words = f"The site cannot be published before the database has what its declarations ask for: {error}"
        messages = [
            CheckWarning(words, hint=f"Run manage.py migrate; {TRACEBACK} shows which one.", id="awp_publish.W007")
        ]
    except Exception as error:  # whatever somebody's declarations, forms and URLs raise: a check tells it
        where = "".join(traceback.format_tb(error.__traceback__)[-1:]).strip().split("\n")[0]
        words = f"The site cannot be published: {type(error).__name__}: {error} ({where})"
        messages = [Error(words, hint=f"Correct it; {TRACEBACK} shows the whole traceback.", id="awp_publish.E006")]
    else:
        messages = [message for check in CHECKS for message in check(publication)]
    if databases and django.VERSION < (6, 1):  # which names databases to every check: migrate is one command of many
        for message in messages:
            message.level = min(message.level, WARNING)
    return messages


def _check_middleware(publication: Publication) -> Iterator[CheckMessage]:
    if MIDDLEWARE not in settings.MIDDLEWARE:
        match = _match(next(iter(publication.documents())))
        if getattr(getattr(match, "func", None), "__module__", "") == URLS:  # they are included where the documents are
            return
        hint = f'Add "{MIDDLEWARE}" to MIDDLEWARE, below AuthenticationMiddleware; or include("{URLS}").'
        yield Error("AgentPublisherMiddleware is not in MIDDLEWARE.", hint=hint, id="awp_publish.E003")
        return
    place = settings.MIDDLEWARE.index(MIDDLEWARE)
    above = settings.MIDDLEWARE[:place]
    has_formats = publication.site.ask("pages") is not None
    if has_formats and FETCH in above and UPDATE in settings.MIDDLEWARE[place:]:
        yield Error(
            f"{FETCH} is above AgentPublisherMiddleware and {UPDATE} below it: agents would get browsers' HTML "
            "from the cache.",
            hint=f'Put "{UPDATE}" first and "{FETCH}" last in MIDDLEWARE, as Django requires; '
            "AgentPublisherMiddleware may be anywhere.",
            id="awp_publish.E007",
        )
    sign_in = publication.site.plugins.get("sign_in")
    people = (sign_in.options.user or ApplicationUser(),) if sign_in is not None else ()
    for kind, needed in ((SessionUser, SESSIONS), (ApplicationUser, USERS)):
        where = place_of_middleware(needed)
        is_above = where is not None and where < place
        if not is_above and any(
            isinstance(authenticator, kind) for authenticator in (*publication.site.authenticators, *people)
        ):
            yield Error(
                f"The site knows its callers by {kind.__name__}, but {needed} is not above AgentPublisherMiddleware.",
                hint=f'Put "{MIDDLEWARE}" below it.',
                id="awp_publish.E004",
            )


def _check_sign_in(publication: Publication) -> Iterator[CheckMessage]:
    """The page to which people are sent, unless the site says where that is."""
    sign_in = publication.site.plugins.get("sign_in")
    if sign_in is None or sign_in.options.login is not None:
        return
    from awp_publish_django.sign_in import REMEDY, why_nobody_signs_in

    if why := why_nobody_signs_in(publication.site):
        yield Error(why, hint=REMEDY, id="awp_publish.E008")


def _check_threads(publication: Publication) -> Iterator[CheckMessage]:
    if is_eventlet():
        yield Error(EVENTLET, hint="Documents are served as they are; calls are refused.", id="awp_publish.E005")


def _check_url(publication: Publication) -> Iterator[CheckMessage]:
    for url in publication.site.settings.urls:
        parts = urlsplit(url)
        if parts.scheme != "https" and parts.hostname not in LOCAL:
            yield CheckWarning(
                f"The site's url {url} is not secure: agents would send credentials in the clear.",
                hint="Give Site(url=...) or AWP_PUBLISH_URL an https address.",
                id="awp_publish.W001",
            )
    prefix, urls = (settings.FORCE_SCRIPT_NAME or "").rstrip("/"), publication.site.settings.urls
    if prefix and not any(urlsplit(url).path.rstrip("/") == prefix for url in urls):
        yield CheckWarning(
            f"FORCE_SCRIPT_NAME is {prefix}, and the site's url is {urls[0]}: no address in its documents leads there.",
            hint=f'Write Site(url="{urljoin(urls[0], prefix)}").',
            id="awp_publish.W008",
        )


def _check_hosts(publication: Publication) -> Iterator[CheckMessage]:
    """The site's own host, which Django refuses to know. A project in development has no list yet."""
    if settings.DEBUG and not settings.ALLOWED_HOSTS:
        return
    allowed = list(settings.ALLOWED_HOSTS)
    for url in publication.site.settings.urls:
        host = urlsplit(url).hostname or ""
        host = f"[{host}]" if ":" in host else host
        if not validate_host(host, allowed):
            yield CheckWarning(
                f"ALLOWED_HOSTS does not have {host}, the host of the site's url: Django answers 400.",
                hint=f'Add "{host}" to ALLOWED_HOSTS, or correct Site(url=...).',
                id="awp_publish.W005",
            )


def _check_shadows(publication: Publication) -> Iterator[CheckMessage]:
    """Paths that the project answers too, which nobody reaches any more."""
    catalog = publication.site.catalog
    calls = [
        path for action in catalog.actions for path in (catalog.invoke_path_of(action), catalog.plain_path_of(action))
    ]
    doors = [door.path for doors in doors_of(publication.site.plugins, catalog.paths).values() for door in doors]
    for path in sorted({*publication.documents(), catalog.paths.status, *calls, *doors}):
        match = _match(path)
        if match is None or getattr(match.func, "__module__", "") == URLS:
            continue
        other = _match(f"{path}-{OTHER}")  # a route that takes other paths too is not meant for this one
        if not match.kwargs and not match.args and (other is None or other.route != match.route):
            yield CheckWarning(
                f'The URLconf has a view for {path} ("{match.route}"), which awp_publish now answers.',
                hint="Remove the route, or move ours with Site(paths=Paths(...)).",
                id="awp_publish.W002",
            )


def _match(path: str) -> ResolverMatch | None:
    try:
        return get_resolver().resolve(path)
    except Resolver404:
        return None


def _check_store(publication: Publication) -> Iterator[CheckMessage]:
    site = publication.site
    actions = [action.id for action in site.catalog.actions if action.remembers]
    in_memory = [f"confirmations, keys or jobs of {', '.join(actions)}"] if actions else []
    in_memory += ["what people have allowed"] if "sign_in" in site.plugins else []
    in_memory += ["the tasks of the A2A door"] if "a2a" in site.plugins else []
    if in_memory and not site.store.is_shared and not settings.DEBUG:
        yield CheckWarning(
            f"The memory of one process keeps {' and '.join(in_memory)}; "
            "other workers do not know them, and they are lost when it ends.",
            hint='Give Site(store=DjangoStore()), store="sqlite:///agents.db" or store="redis://...".',
            id="awp_publish.W003",
        )


def _check_forms(publication: Publication) -> Iterator[CheckMessage]:
    for kind in sorted(publication.unread_forms, key=lambda form: form.__qualname__):
        yield CheckWarning(
            f"{kind.__module__}.{kind.__qualname__} cannot be read without a request, arguments or the database, "
            "and its class does not declare everything.",
            hint="Declare what it takes: inputs= with a JSON Schema, or a form that can be made without them.",
            id="awp_publish.W004",
        )


def _check_findings(publication: Publication) -> Iterator[CheckMessage]:
    """Yield the findings of declarations and plug-ins, as they are logged when a server starts."""
    for finding in publication.site.findings:
        yield CheckWarning(finding.message, hint=finding.hint, id="awp_publish.W006")


CHECKS: Final[tuple[Callable[[Publication], Iterator[CheckMessage]], ...]] = (
    _check_middleware,
    _check_sign_in,
    _check_threads,
    _check_url,
    _check_hosts,
    _check_shadows,
    _check_store,
    _check_forms,
    _check_findings,
)
