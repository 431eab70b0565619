"""What Django knows of a project's users, for the plug-in `sign_in`: `plugins=["mcp", SignIn()]` is enough.

An agent's calls are made with a session of the token's own, which Django's own middleware recognizes as it recognizes a
browser's. So it ends with a change of the password or with `is_active = False`, and no browser shares it.
"""

from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from datetime import timedelta
from http.cookies import SimpleCookie
from importlib import import_module
from typing import Any, ClassVar, Final, TypeVar
from urllib.parse import urlsplit

from django.apps import apps
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model, load_backend, logout
from django.core.exceptions import ValidationError
from django.shortcuts import resolve_url
from django.template import TemplateDoesNotExist, loader
from django.urls import NoReverseMatch, Resolver404, get_script_prefix, resolve, set_script_prefix
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.translation import get_language, gettext, override

from awp_publish import ApplicationUser, DeclarationError, Site
from awp_publish.calls.call import Credentials
from awp_publish.calls.threads import run_in_thread
from awp_publish.http.exchange import Scope
from awp_publish.plugins.sign_in.framework import ENGLISH, FRAMEWORKS, Framework, Language
from awp_publish_django.languages import speaking
from awp_publish_django.project import BRIDGE, run_beside_requests

T = TypeVar("T")

MARK: Final = "_awp_sign_in"
"""The member by which a session that was begun here is known."""

ALLOW: Final = "Allow"
"""The button of the consent page. A catalogue that has it is taken to have the whole page."""

REMEDY: Final = 'Set LOGIN_URL to the page on which people sign in, or write SignIn(login="/login/").'


def serve_sign_in(site: Site) -> None:
    """Let a site's sign-in know the project's users."""
    FRAMEWORKS[site] = DjangoUsers(site)


class DjangoUsers(Framework):
    """The users of the project, as `django.contrib.auth` knows them."""

    signs_out: ClassVar[bool] = True

    def __init__(self, site: Site) -> None:
        self._site = site

    def login(self) -> str:
        """Return LOGIN_URL, a path below the site or an address. Raises DeclarationError."""
        try:
            return self._below(login_url())
        except NoReverseMatch as error:
            wrong = f"SignIn: LOGIN_URL is {str(settings.LOGIN_URL)!r}, and the project has no URL of this name."
            raise DeclarationError("site", wrong, REMEDY) from error

    def _below(self, address: str) -> str:
        """Return a path as it is below the site. LOGIN_URL may be written as browsers ask for it."""
        mounted = urlsplit(self._site.settings.urls[0]).path.rstrip("/")
        return address.removeprefix(mounted) if address.startswith(f"{mounted}/") else address

    def user(self) -> ApplicationUser | None:
        """Return what tells who is signed in: `request.user`."""
        return ApplicationUser() if apps.is_installed("django.contrib.auth") else None

    async def begin_session(self, scope: Scope, seconds: int) -> list[str] | None:
        """Begin a session for the user of a request, who has signed in with a session; None for anybody else."""
        signed, user = scope.get("session") or {}, scope.get("user")
        if user is None or not user.is_authenticated or signed.get(SESSION_KEY) != _key_of(user):
            return None

        def begin() -> list[str]:
            session = _sessions()
            session.update({name: signed[name] for name in (SESSION_KEY, BACKEND_SESSION_KEY)})
            session.update({HASH_SESSION_KEY: signed.get(HASH_SESSION_KEY, ""), MARK: True})
            session.set_expiry(timezone.now() + timedelta(seconds=seconds))
            session.save()
            return [_cookie_line(session.session_key, seconds)]

        return await _in_thread(begin)

    async def end_session(self, cookies: Mapping[str, str]) -> None:
        """End a session that was begun here."""
        key = cookies.get(settings.SESSION_COOKIE_NAME)

        def end() -> None:
            session = _sessions(key)
            if session.get(MARK):
                session.flush()

        if key:
            await _in_thread(end)

    async def sign_out(self, scope: Scope) -> bool:
        """Sign the user of a request out of their browser."""
        bridge = scope.get(BRIDGE)
        if bridge is None:
            return False
        await _in_thread(lambda: logout(bridge.request))
        return True

    def is_permission(self, scope: str) -> bool:
        """Return True for a permission of one of the project's applications: "shop.add_order"."""
        application, dot, name = scope.partition(".")
        return bool(dot and name) and application in apps.app_configs

    async def permitted(
        self, scopes: frozenset[str], person: str, credentials: Credentials, cookies: Mapping[str, str] | None
    ) -> frozenset[str] | None:
        """Return the scopes without the permissions that a user does not have; None for a user who is signed out."""

        def permit() -> frozenset[str] | None:
            user: Any = credentials.user
            if user is None or not user.is_authenticated or str(user.pk) != person:
                key = cookies.get(settings.SESSION_COOKIE_NAME) if cookies is not None else None
                user = _user_of(key) if cookies is not None else _user_named(person)
            if user is None:
                return None
            return frozenset(scope for scope in scopes if not self.is_permission(scope) or user.has_perm(scope))

        return await _in_thread(permit)

    async def render(self, scope: Scope, template: str, facts: Mapping[str, object]) -> str | None:
        """Render a page by a template of the project's own, None if it has none of this name."""
        bridge = scope.get(BRIDGE)

        def render() -> str | None:
            try:
                page = loader.get_template(template)
            except TemplateDoesNotExist:
                return None
            if bridge is None:
                return str(page.render(dict(facts)))
            with speaking(bridge.request):
                return str(page.render(dict(facts), bridge.request))

        return await _in_thread(render)

    def language_of(self, scope: Scope) -> Language:
        """Return the language of a request, if the project's catalogues have our words in it."""
        bridge = scope.get(BRIDGE)
        with speaking(bridge.request) if bridge is not None else nullcontext():
            language = get_language() or ""

        def translate(text: str) -> str:
            with override(language):
                return gettext(text)

        is_known = bool(language) and translate(ALLOW) != ALLOW
        return Language(language, translate) if is_known else ENGLISH

    async def name_of(self, scope: Scope) -> str:
        """Return the full name of the user of a request, or the name with which they sign in."""
        user = scope.get("user")
        if user is None or not hasattr(user, "get_username"):
            return ""
        full_name = getattr(user, "get_full_name", str)  # models of a project's own need not have it
        return await _in_thread(lambda: str(full_name() or user.get_username()))


def why_nobody_signs_in(site: Site) -> str | None:
    """Return what is wrong with LOGIN_URL, None for a page of the project or an address elsewhere."""
    try:
        page = urlsplit(DjangoUsers(site).login())
    except DeclarationError as error:
        return error.detail
    if page.scheme or _is_served(page.path):
        return None
    return f"SignIn: people are sent to LOGIN_URL ({str(settings.LOGIN_URL)!r}), where the project has no page."


def _is_served(path: str) -> bool:
    """Return True if the project has a view for a path, or redirects to one: to a slash, or to a language."""
    language = f"/{get_language() or settings.LANGUAGE_CODE}"
    for candidate in (path, f"{path}/", language + path, f"{language}{path}/"):
        with suppress(Resolver404):
            resolve(candidate)
            return True
    return False


def login_url() -> str:
    """Return LOGIN_URL as an address or a path, without the prefix of the mount. Raises NoReverseMatch."""
    prefix = get_script_prefix()
    set_script_prefix("/")
    try:
        return resolve_url(settings.LOGIN_URL)
    finally:
        set_script_prefix(prefix)


async def _in_thread(function: Callable[[], T]) -> T:
    """Run a function that asks the database, in the thread of the request if there is one."""
    return await run_in_thread(function, run_beside_requests)


def _sessions(key: str | None = None) -> Any:
    return import_module(settings.SESSION_ENGINE).SessionStore(key)


def _key_of(user: Any) -> str:
    return str(user._meta.pk.value_to_string(user))


def _user_of(session_key: str | None) -> Any:
    """Return the user of a session, as `django.contrib.auth.get_user` does, but without changing the session."""
    session = _sessions(session_key) if session_key else {}
    if session.get(BACKEND_SESSION_KEY) not in settings.AUTHENTICATION_BACKENDS:
        return None
    user_id = get_user_model()._meta.pk.to_python(session[SESSION_KEY])
    user: Any = load_backend(session[BACKEND_SESSION_KEY]).get_user(user_id)
    if user is None or not hasattr(user, "get_session_auth_hash"):
        return user
    hashes = (user.get_session_auth_hash(), *user.get_session_auth_fallback_hash())
    session_hash = session.get(HASH_SESSION_KEY) or ""
    return user if any(constant_time_compare(session_hash, valid_hash) for valid_hash in hashes) else None


def _user_named(person: str) -> Any:
    """Return the user with a primary key, None if there is none who may sign in."""
    users = get_user_model()
    try:
        user = users._default_manager.filter(pk=person).first()
    except (ValueError, ValidationError):  # not a key of this kind
        return None
    return user if user is not None and getattr(user, "is_active", True) else None


def _cookie_line(key: str, seconds: int) -> str:
    """Return the Set-Cookie line of a session, as Django's own middleware writes it."""
    cookie: SimpleCookie = SimpleCookie()
    cookie[settings.SESSION_COOKIE_NAME] = key
    written = cookie[settings.SESSION_COOKIE_NAME]
    written["path"], written["max-age"] = settings.SESSION_COOKIE_PATH, seconds
    written["domain"] = settings.SESSION_COOKIE_DOMAIN or ""
    written["secure"] = bool(settings.SESSION_COOKIE_SECURE)
    return written.OutputString()
