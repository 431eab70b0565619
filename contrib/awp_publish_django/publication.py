"""The one publication of a process: the project's site, its publisher, and the loop on which it runs under WSGI."""

import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NoReturn
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from django.apps import apps
from django.conf import settings
from django.core.signals import setting_changed
from django.db import OperationalError, connections
from django.urls import NoReverseMatch, reverse

from awp_publish import AgentPublisher, Site
from awp_publish.checks.engine import Finding
from awp_publish.cli import PATHS
from awp_publish.http.exchange import Reply, Scope
from awp_publish_django.apps import FAILED
from awp_publish_django.conf import NAME, TEST_HOST, Settings, load_site, read_settings
from awp_publish_django.forms import UNREAD
from awp_publish_django.own_middleware import is_own
from awp_publish_django.portal import Portal
from awp_publish_django.project import DjangoProject
from awp_publish_django.reading import find_dead
from awp_publish_django.signals import Sender

if TYPE_CHECKING:
    from awp_publish_django.recent import Recorder

LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
logger: Final = logging.getLogger("awp_publish")

APP: Final = "awp_publish_django"
MIDDLEWARE: Final = "awp_publish_django.middleware.AgentPublisherMiddleware"


@dataclass(frozen=True)
class Publication:
    """The objects that the middleware, the commands, the checks and the template tags share."""

    settings: Settings
    site: Site
    project: DjangoProject
    publisher: AgentPublisher
    recorder: "Recorder | None" = None

    @cached_property
    def portal(self) -> Portal:
        """The loop on which the doors run under WSGI."""
        return Portal(self.publisher)

    def close(self) -> None:
        """End the loop on which the doors run, if a request has started it."""
        if "portal" in self.__dict__:
            self.portal.close()

    def documents(self, *, with_fallbacks: bool = False) -> dict[str, bytes]:
        """Return what is published at the canonical address, by path. The project may have fallbacks itself."""
        catalog, publisher = self.site.catalog, self.publisher
        replies: dict[str, Reply | None] = {}
        for path in sorted(PATHS):
            scope: Scope = {
                "method": "GET",
                "path": path,
                "root_path": "",
                "headers": [(b"host", catalog.url.split("/")[2].encode())],
            }
            replies[path] = publisher.document(scope) or (
                publisher.document(scope, is_fallback=True) if with_fallbacks else None
            )
        return {path: reply.body for path, reply in replies.items() if reply is not None}

    @cached_property
    def middleware_above(self) -> tuple[str, ...]:
        """The middleware above ours that is not Django's own, unless the site trusts it to look at no address."""
        listed = list(settings.MIDDLEWARE)
        if self.settings.trust_outer_middleware or MIDDLEWARE not in listed:
            return ()
        return tuple(filter(is_own, listed[: listed.index(MIDDLEWARE)]))

    @cached_property
    def _own_hosts(self) -> frozenset[str]:
        return LOCAL | {TEST_HOST} | {urlsplit(url).hostname or "" for url in self.site.settings.urls}

    def is_own_host(self, host: str) -> bool:
        """Return True if a request's Host is one of the site's addresses, or that of development or of tests."""
        return (urlsplit(f"//{host}").hostname or "") in self._own_hosts

    @property
    def unread_forms(self) -> frozenset[type]:
        """Forms that nobody could make when the site was published, and whose class does not tell what they take."""
        return _unread.get(self.site, frozenset())

    @cached_property
    def authenticates(self) -> bool:
        """Return True if the site authenticates callers in any way."""
        return bool(self.site.authenticators)

    @cached_property
    def waits_for_approval(self) -> bool:
        """Return True if documents change while the process runs, which takes a loop that looks for approvals."""
        return "approval" in self.site.plugins

    @cached_property
    def uses_scopes(self) -> bool:
        """Return True if any action needs scopes."""
        return any(action.scopes for action in self.site.catalog.actions)


_lock = threading.RLock()
_publications: list[Publication] = []
_publishing: list[bool] = []
_unread: WeakKeyDictionary[Site, frozenset[type]] = WeakKeyDictionary()


def get_publication() -> Publication:
    """The publication of this process, its site frozen against the URLconf.

    Raises ImproperlyConfigured for wrong settings, DeclarationError for a wrong declaration, and what the import of the
    project's declarations raises.
    """
    with _lock:
        if not _publications:
            _publishing.append(True)
            try:
                _publications.append(_publish())
            finally:
                _publishing.pop()
        return _publications[0]


def is_publishing() -> bool:
    """Return True if the site is just being frozen, in this or another thread."""
    return bool(_publishing)


def _publish() -> Publication:
    if FAILED:
        raise FAILED[0]
    if not apps.is_installed(APP):
        logger.warning(
            'Add "%s" to INSTALLED_APPS: without it there are no checks and commands, and no agents.py is imported.',
            APP,
        )
    options = read_settings()
    site, project = load_site(options), DjangoProject()
    if "sign_in" in site.plugins:
        from awp_publish_django.sign_in import serve_sign_in

        serve_sign_in(site)
    publisher = AgentPublisher(
        project, site, link_headers=options.link_headers, trust_outer_middleware=options.trust_outer_middleware
    )
    UNREAD.clear()
    project.awp_routes()  # imports the views, on which declarations stand too
    with without_database():
        publisher.open()
        site.findings = (*site.findings, *_dead_actions(site, project))
    listeners = site.ask("telemetry")
    if listeners is not None and not any(isinstance(listener, Sender) for listener in listeners):
        listeners.append(Sender(site))
    _unread.setdefault(site, frozenset(UNREAD))
    return Publication(options, site, project, publisher, _open_recorder(options, site))


@contextmanager
def without_database() -> Iterator[None]:
    """Refuse this thread's queries while forms and views are read, as Django's own TestCase does.

    What is published does not depend on rows, and a check asks for none (Django, system checks).
    """

    def refuse(*_: object, **__: object) -> NoReturn:
        raise OperationalError("The database is not asked for what is published to agents.")

    with ExitStack() as stack:
        for connection in connections.all():
            for name in ("cursor", "chunked_cursor"):
                before = vars(connection).get(name)
                setattr(connection, name, refuse)
                stack.callback(*((setattr, connection, name, before) if before else (delattr, connection, name)))
        yield


def _dead_actions(site: Site, project: DjangoProject) -> Iterator[Finding]:
    """Yield what is wrong with the inputs of the site's actions, by the source of their views."""
    routes = {(method, route.template): route for route in reversed(project.awp_routes()) for method in route.methods}
    for action in site.catalog.actions:
        target = action.target
        route = routes.get((target.method, target.path)) if target is not None else None
        if target is None or route is None or route.arrival is None or route.arrival.endpoint is None:
            continue  # a framework reads, or nobody
        yield from find_dead(action, target, route.handlers)


def _open_recorder(options: Settings, site: Site) -> "Recorder | None":
    if not options.recent_calls or not apps.is_installed("awp_publish_django"):
        return None
    if options.keeps_by_default and not _shows_recent_calls():
        return None
    from awp_publish_django.recent import Recorder

    listeners = site.ask("telemetry")
    if listeners is None:
        return None
    # Recorders are of other settings.
    listeners[:] = [listener for listener in listeners if not isinstance(listener, Recorder)]
    recorder = Recorder(options.recent_calls)
    listeners.append(recorder)
    return recorder


def _shows_recent_calls() -> bool:
    """Return True if an admin of the project shows recent calls: an AdminSite of its own may not."""
    try:
        reverse("admin:awp_publish_django_recentcall_changelist")
    except NoReverseMatch:
        return False
    return True


def _forget(*, setting: str, **_: object) -> None:
    """Forget the publication when a test overrides settings."""
    if setting in (NAME, "ROOT_URLCONF", "MIDDLEWARE"):
        with _lock:
            forgotten = _publications[:]
            _publications.clear()
        for publication in forgotten:
            publication.close()


setting_changed.connect(_forget)
