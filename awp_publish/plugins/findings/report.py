"""The findings about a site: in its documents, and about addresses that no route answers.

Findings of the same check are grouped into one line, with at most MAX_LINES in total.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from awp_publish.checks import Finding, check_documents
from awp_publish.checks.urls import is_loopback, is_private
from awp_publish.model import Catalog
from awp_publish.plugin import DeclaredSite

logger: Final = logging.getLogger("awp_publish.checks")

MAX_LINES: Final = 10
MAX_NAMES: Final = 5
COMMAND: Final = "awp-publish check module:app"

_LEVELS: Final = {"error": logging.ERROR, "warning": logging.WARNING}
DEVELOPMENT_CHECKS: Final = frozenset({"woa-base", "woa-loopback", "woa-private-address"})
"""Checks that are left out for a site on a loopback address, where they would only report that fact."""


def report(site: DeclaredSite, documents: Mapping[str, Any], routes: Sequence[Any], root_path: str) -> None:
    """Log the findings about the first address of a site."""
    findings = check_published(site, site.catalog, documents, routes, root_path)
    for level, line in summarize(findings):
        logger.log(level, "%s", line)


def check_published(
    site: DeclaredSite, catalog: Catalog, documents: Mapping[str, Any], routes: Sequence[Any], root_path: str
) -> tuple[Finding, ...]:
    """Return the findings about one address of a site: about its documents, and about the addresses in them.

    `documents` are served as `http.documents.Prepared` says, `routes` are those of the application.
    """
    bodies = {
        catalog.prefix + path: prepared.body
        for path, prepared in documents.items()
        if prepared.media_type.partition(";")[0].endswith("json")
    }
    findings = [*check_addresses(catalog, documents, routes, root_path), *check_documents(bodies)]
    findings += site.findings
    hosts = {other.domain for other in site.catalogs}
    own = {route.template for route in routes if not route.host or "{" in route.host or route.host in hosts}
    elsewhere = {route.template for route in routes} - own
    for action in catalog.actions:
        if action.target is not None and action.target.path in elsewhere:
            findings.append(
                _warning(
                    "start-host",
                    f"The route of action {action.id} is for another host than {' and '.join(sorted(hosts))}: no call "
                    "there reaches it.",
                    'Add the address of its host to Site(url=["https://...", ...]), or move the route out of Host.',
                )
            )
    remembering = [action.id for action in catalog.actions if action.remembers]
    if remembering and not site.store.is_shared:
        findings.insert(
            0,
            _warning(
                "start-memory",
                f"Confirmations, keys or jobs of {_name_some(remembering)} are kept in the memory of this process: "
                "they are lost when it ends, and other workers do not know them.",
                'Give Site(store="sqlite:///agents.db") or "redis://...".',
            ),
        )
    is_local = is_loopback(catalog.domain)
    return tuple(finding for finding in findings if not (is_local and finding.check in DEVELOPMENT_CHECKS))


def _name_some(names: Sequence[str]) -> str:
    """Return the first of the names, and how many more there are."""
    more = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {more} more actions" if more > 0 else "")


def summarize(findings: Iterable[Finding]) -> Iterator[tuple[int, str]]:
    """Yield log levels and lines, errors first: one line for all findings of a check in documents.

    Of a check of the site itself, such as one of each action, up to MAX_NAMES findings have a line each.
    """
    findings = list(findings)
    count = Counter(finding.check for finding in findings)
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in sorted(findings, key=lambda finding: finding.level != "error"):
        own = "" if finding.document or count[finding.check] > MAX_NAMES else finding.message
        groups.setdefault((finding.level, finding.check, own), []).append(finding)
    listed = list(groups.items())
    shown = listed if len(listed) <= MAX_LINES else listed[: MAX_LINES - 1]
    for (level, check, _), group in shown:
        first = str(group[0]).removeprefix(f"{level}: ")
        many = f"{level}: {len(group)} x {check}, first: {first} All of them: {COMMAND}"
        yield _LEVELS[level], many if len(group) > 1 else str(group[0])
    if rest := [finding for _, group in listed[len(shown) :] for finding in group]:
        kinds = len(listed) - len(shown)
        yield _LEVELS[rest[0].level], f"{len(rest)} more findings of {kinds} kinds; run {COMMAND} to see them."


def check_addresses(
    catalog: Catalog, documents: Iterable[str], routes: Sequence[Any], root_path: str
) -> Iterator[Finding]:
    """Find declared addresses that no route answers, and routes of the application that we answer instead.

    `root_path` is that of the server: the path at which it says the application is mounted.
    """
    if root_path.rstrip("/") not in ("", catalog.prefix):
        yield _warning(
            "start-root-path",
            f"The server says that the application is below {root_path} (root_path), and the site's url is "
            f"{catalog.url}: the addresses in its documents do not lead there.",
            f'Write Site(url="{catalog.url.removesuffix(catalog.prefix)}{root_path.rstrip("/")}").',
        )
    if catalog.url.startswith("http://") and not is_private(urlsplit(catalog.url).hostname or ""):
        yield _warning(
            "start-http",
            f"The site's url is {catalog.url}: tokens, sessions and confirmations go over the network unencrypted.",
            'Serve it with TLS, and write Site(url="https://...").',
        )
    ours = {*documents, *catalog.own_paths}
    for route in routes:
        if not route.is_opaque and route.path in ours:
            name = f"{' and '.join(route.methods)} {route.path}"
            yield _warning(
                "start-shadowed",
                f"The application's own route {name} is never reached: AgentPublisher answers there.",
                "Remove one of the two: move the route, give Site(paths=...) another address, or leave the document "
                "out with Site(about=About(leave_out=[...])).",
            )
    needing = [action for action in catalog.actions if action.auth_required]
    unknown = [action.id for action in needing if not (action.route_credentials or action.security_schemes)]
    if unknown and catalog.site.authentication is None:
        yield _warning(
            "start-credentials",
            f"The actions {', '.join(unknown)} need credentials, but no document can say which ones.",
            "Give Site(authenticate=...), or, in FastAPI, their routes a security scheme (HTTPBearer, APIKeyHeader).",
        )
    by_name = [f"{action.id} ({', '.join(action.secret_names)})" for action in catalog.actions if action.secret_names]
    if by_name:
        yield _warning(
            "start-secrets",
            f"These inputs are treated as secret because of their names: {'; '.join(by_name)}. "
            "Summaries, logs and traces hide them.",
            "Declare them as SecretStr, or with writeOnly in their schema; rename those that are not secret.",
        )
    for name, address in _named(catalog):
        path = urlsplit(address).path
        is_ours = path in ours or path.startswith(f"{catalog.paths.root}/")
        is_known = is_ours or any(route.takes(method, path) for route in routes for method in route.methods)
        if routes and address.startswith("/") and not is_known:
            yield _warning(
                "start-address",
                f"{name} names {address}, and no route of this application answers there.",
                "Correct the address, add the route, or write the whole URL if it is somebody else's.",
            )


def _named(catalog: Catalog) -> Iterator[tuple[str, str]]:
    """Return the addresses in a site's declarations, with the names of their declarations."""
    site, declared = catalog.site, catalog.site.authentication
    answers: dict[str, str | None] = {"About(documentation=...)": site.documentation}
    if site.contact is not None:
        answers["About(contact=...)"] = site.contact.url
    if declared is not None:
        answers["The refresh_endpoint"] = declared.refresh_endpoint
        answers |= {f'The endpoint "{name}" of authentication': address for name, address in declared.endpoints.items()}
    answers["The status_endpoint"] = catalog.status.status_endpoint
    answers |= {f'action "{action.id}": preview_url': action.preview_url for action in catalog.actions}
    yield from ((name, address) for name, address in answers.items() if address is not None)
    yield from (("A security scheme's tokenUrl", address) for address in sorted(catalog.token_addresses))


def _warning(check: str, message: str, hint: str) -> Finding:
    return Finding("warning", check, "", message, hint, "awp_publish")
