"""How a site guards its calls: read from its options, checked against its actions, made ready for the doors."""

import os
import secrets
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Final, cast

from awp_publish.model import Action, Authentication, Catalog, Jobs, OAuth, RateLimit, seconds_of
from awp_publish.policy.authentication import ApiKey, Authenticator, SessionUser, published_facts, read_authenticators
from awp_publish.policy.guard import Enforcement
from awp_publish.policy.prerequisites import Receipts
from awp_publish.policy.tokens import Tokens
from awp_publish.problems import DeclarationError
from awp_publish.settings import SiteOptions
from awp_publish.stores import ForeignStore, Store, open_store

MEMORY: Final = "memory:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarding:
    """What a site declares about all of its calls. Lifetimes are in seconds.

    `secret_keys` are the newest first; without any, what stays in this process is signed with its `own_key`.
    `job_queue` is the address of a task queue, None for jobs that run in the processes of the site itself.
    """

    store: Store
    host: str
    secret_keys: tuple[str, ...] = field(repr=False)
    own_key: str = field(default_factory=partial(secrets.token_urlsafe, 32), repr=False)
    authenticators: tuple[Authenticator, ...]
    trusted_proxies: tuple[str, ...]
    forwarded: str | None
    confirmation_lifetime: float
    receipt_lifetime: float
    job_queue: str | None = field(repr=False)
    job_concurrency: int
    job_results: float
    status_interval: float
    log_inputs: bool


def read_guarding(options: SiteOptions, host: str) -> Guarding:
    """What the options say, in terms of `host`, under whose name the store keeps things. Raises DeclarationError."""
    if "forwarded" in options and not options.get("trusted_proxies"):
        remedy = 'Give Site(trusted_proxies=["10.0.0.0/8"]) too, or leave forwarded out.'
        raise DeclarationError("site", "forwarded: is believed of trusted_proxies only, and there are none.", remedy)
    jobs = options.get("jobs", Jobs())
    return Guarding(
        store=_read_store(options.get("store", MEMORY), host),
        host=host,
        secret_keys=cast(tuple[str, ...], options.get("secret_keys", ())),
        authenticators=read_authenticators(options["authenticate"]) if "authenticate" in options else (),
        trusted_proxies=tuple(options.get("trusted_proxies", ())),
        forwarded=options.get("forwarded"),
        confirmation_lifetime=float(seconds_of(options.get("confirm_within", "10m"))),
        receipt_lifetime=float(seconds_of(options.get("receipts_within", "1h"))),
        job_queue=jobs.queue,
        job_concurrency=jobs.concurrency,
        job_results=float(seconds_of(jobs.results)),
        status_interval=float(seconds_of(options.get("status_interval", "30s"))),
        log_inputs=options.get("log_inputs", False),
    )


def _read_store(given: object, host: str) -> Store:
    if isinstance(given, str):
        return open_store(given, host)
    if all(callable(getattr(given, verb, None)) for verb in ("run", "take", "close")):
        return ForeignStore(cast(Store, given))
    raise DeclarationError("site", f"store: {given!r} is not a store.", 'Write "sqlite:///agents.db" or "redis://...".')


def published_authentication(guarding: Guarding, oauth: OAuth | None) -> Authentication | None:
    """Return what the documents say of the ways in which callers are known; None if nothing is known of them."""
    known = guarding.authenticators
    if not known and oauth is None:
        return None
    scheme, methods = published_facts(known)
    session = next((one for one in known if isinstance(one, SessionUser)), None)
    oauth_endpoints = oauth.endpoints if oauth is not None else {}
    return Authentication(
        type="oauth2" if oauth is not None else scheme,
        methods=methods,
        token_expiry=oauth.token_expiry if oauth is not None else None,
        refresh_endpoint=oauth.refresh_endpoint if oauth is not None else None,
        endpoints={**oauth_endpoints, **(session.endpoints if session is not None else {})},
        authorization_servers=oauth.authorization_servers if oauth is not None else (),
        api_key_header=next((one.header for one in known if isinstance(one, ApiKey)), None),
        session_cookie=session.cookie if session is not None else None,
    )


# --- With the actions at hand ---


def check_guarding(guarding: Guarding, actions: Sequence[Action], site_limit: RateLimit | None, has_a2a: bool) -> None:
    """Refuse what could not be enforced. Raises DeclarationError that names the action."""
    if not guarding.store.is_shared:
        _check_workers(actions, site_limit, has_a2a)
    for action in actions:
        subject = f'action "{action.id}"'
        if action.auth_required and not (guarding.authenticators or action.route_authenticates):
            raise DeclarationError(
                subject,
                "auth_required: nothing here tells who calls.",
                "Give Site(authenticate=...), or the route a security scheme.",
            )
        if action.requires or action.needs_confirmation:
            _need_keys(guarding, subject)
        if action.is_background and guarding.job_queue is not None:
            _need_queue(guarding, subject)


def _check_workers(actions: Sequence[Action], site_limit: RateLimit | None, has_a2a: bool) -> None:
    """Refuse a store in memory where several processes serve the site: one key would run a payment in each of them."""
    kept = [action.id for action in actions if _remembers(action) or action.rate_limit or action.requires]
    if (kept or site_limit or has_a2a) and (workers := count_workers()) > 1:
        things = "idempotency keys, confirmations, receipts, jobs and counts of calls"
        what = [f"{things} of {', '.join(kept)}"] if kept else []
        what += ["counts of calls of all actions"] if site_limit and not kept else []
        what += ["the tasks of the A2A door"] if has_a2a else []
        raise DeclarationError(
            "site",
            f"{workers} workers serve it, and each would keep {' and '.join(what)} in a memory of its own.",
            'Give Site(store="sqlite:///agents.db"), or "redis://..." for several machines; or run one worker.',
        )


def _need_keys(guarding: Guarding, subject: str) -> None:
    """Every process that shares the store has to sign with the same keys; without sharing, any key will do."""
    if guarding.store.is_shared and not guarding.secret_keys:
        raise DeclarationError(
            subject,
            "needs signed tokens, and the site has no secret_keys.",
            'Give Site(secret_keys=["..."]) one that all processes share, from the environment say.',
        )


def _need_queue(guarding: Guarding, subject: str) -> None:
    if not guarding.store.is_shared:
        raise DeclarationError(
            subject, "runs in another process, which cannot see a store in memory.", 'Give Site(store="redis://...").'
        )
    if find_spec("taskiq") is None or find_spec("taskiq_redis") is None:
        raise DeclarationError(
            subject, "needs taskiq, which is not installed.", 'Install it: pip install "awp-publish[jobs]".'
        )


def make_enforcement(guarding: Guarding, catalog: Catalog, metadata_url: str | None) -> Enforcement:
    """What the guards of a catalog share. `metadata_url` is where RFC 9728 metadata is served, if it is."""
    keys = guarding.secret_keys or (guarding.own_key,)
    receipted = frozenset(needed for action in catalog.actions for needed in action.requires)
    return Enforcement(
        store=guarding.store,
        authenticators=guarding.authenticators,
        realm=catalog.site.name,
        metadata_url=metadata_url,
        rate_limit=catalog.site.rate_limit,
        confirmations=Tokens(keys, f"confirmation:{guarding.host}", guarding.confirmation_lifetime)
        if any(action.needs_confirmation for action in catalog.actions)
        else None,
        receipts=Receipts(Tokens(keys, f"receipt:{guarding.host}", guarding.receipt_lifetime), catalog.actions)
        if receipted
        else None,
        receipted=receipted,
    )


def remembering_actions(catalog: Catalog) -> list[str]:
    """Which actions keep something between calls, which a store in memory forgets when its process ends."""
    return [action.id for action in catalog.actions if _remembers(action)]


def _remembers(action: Action) -> bool:
    return action.is_background or action.needs_confirmation or action.idempotency is not None


# --- Several workers ---


def count_workers() -> int:
    """Return how many processes serve this application, this one included; 1 where nothing tells of more.

    An application runs on top of its server, whose settings are found on the stack of the main thread: gunicorn's,
    uvicorn's and hypercorn's with `--workers`, whether given there, in a file or in WEB_CONCURRENCY. A reloader starts
    one process at a time. Only where no server is found that we know, WEB_CONCURRENCY itself is believed.
    """
    is_alone = False
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        match frame.f_globals.get("__name__"):
            case "gunicorn.arbiter":
                return _number(getattr(getattr(frame.f_locals.get("self"), "cfg", None), "workers", 1))
            case "uvicorn._subprocess" | "hypercorn.asyncio.run" if "config" in frame.f_locals:
                config = frame.f_locals["config"]
                reloads = getattr(config, "reload", False) or getattr(config, "use_reloader", False)
                return 1 if reloads else _number(getattr(config, "workers", 1))
            case "uvicorn.server" | "django.core.management.commands.runserver":
                is_alone = True  # unless it was started by one of those above
        frame = frame.f_back
    return 1 if is_alone else _number(os.environ.get("WEB_CONCURRENCY", "1"))


def _number(given: object) -> int:
    text = str(given).strip()
    return max(int(text), 1) if text.isdecimal() and len(text) < 9 else 1
