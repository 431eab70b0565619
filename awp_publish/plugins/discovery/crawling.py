"""Files for crawlers: robots.txt, sitemap.xml and sitemap.md, security.txt, auth.md.

Each is a fallback: a file of the application itself takes precedence. robots.txt is RFC 9309 with the lines that
`Site(robots=Robots(...))` adds: Content-Signal (contentsignals.org), Content-Usage (AIPREF), License (RSL 1.0).
Preferences are the owner's, so none is written that is not declared. Crawlers of models are named, with the rules of
all others.
"""

from datetime import datetime
from typing import Final
from xml.sax.saxutils import escape

from awp_publish.documents.members import (
    ARD_PATH,
    PROTECTED_RESOURCE_PATH,
    absolute_if,
    credentials_of,
    has_interfaces,
    link_text,
    located,
    one_line,
    own_metadata,
    sign_in_of,
)
from awp_publish.documents.protocol import Document, Protocol
from awp_publish.model import Catalog, Robots
from awp_publish.plugins.discovery import llms_txt

# --- robots.txt ---

ROBOTS_PATH: Final = "/robots.txt"
TEXT: Final = "text/plain; charset=utf-8"
MARKDOWN: Final = "text/markdown; charset=utf-8"


AI_CRAWLERS: Final = (
    *("GPTBot", "OAI-SearchBot", "ChatGPT-User", "ClaudeBot", "Claude-User", "Claude-SearchBot", "Claude-Web"),
    *("anthropic-ai", "Google-Extended", "PerplexityBot", "Perplexity-User", "Applebot-Extended", "CCBot"),
    *("Meta-ExternalAgent", "Meta-ExternalFetcher", "Amazonbot", "Bytespider", "cohere-ai", "YouBot", "Diffbot"),
    *("AI2Bot", "Bravebot", "DuckAssistBot", "MistralAI-User"),
)
"""Crawlers of models, which are named beside `*`, with the same rules: their owners look for their own names."""


def agentmap_line(catalog: Catalog) -> str:
    """Return the line of robots.txt that names the ARD catalogue (ARD 0.91), "" if there is none."""
    is_there = catalog.publishes("ard") and has_interfaces(catalog)
    return f"Agentmap: {catalog.absolute(ARD_PATH)}\n" if is_there else ""


def render_robots(catalog: Catalog) -> bytes:
    """Return robots.txt."""
    declared = catalog.site.robots or Robots()
    signals = [f"{name}={value}" for name, value in declared.content_signal.items()]
    preferences = [f"Content-Signal: {', '.join(signals)}"] if signals else []
    preferences += [f"Content-Usage: {declared.content_usage}"] if declared.content_usage else []
    disallowed = [f"Disallow: {located(catalog, path)}" for path in declared.disallow]
    allowed = f"Allow: {catalog.prefix}/"
    unnamed = [name for name in AI_CRAWLERS if name not in declared.bots]
    groups = [["User-agent: *", *(f"User-agent: {name}" for name in unnamed), *preferences, *disallowed, allowed]]
    refused = [name for name, is_allowed in declared.bots.items() if not is_allowed]
    admitted = [name for name, is_allowed in declared.bots.items() if is_allowed]
    if admitted:
        groups.append([*(f"User-agent: {name}" for name in admitted), *preferences, *disallowed, allowed])
    if refused:
        groups.append([*(f"User-agent: {name}" for name in refused), f"Disallow: {catalog.prefix}/"])
    lines = [f"License: {absolute_if(catalog, declared.license)}"] if declared.license else []
    lines += [f"Sitemap: {catalog.absolute(SITEMAP_PATH)}"] if has_sitemap(catalog) else []
    text = "\n\n".join("\n".join(group) for group in [*groups, lines] if group) + "\n"
    return (text + "".join(lines(catalog) for lines in catalog.robots_lines)).encode()


# --- Sitemaps ---

SITEMAP_PATH: Final = "/sitemap.xml"
NAMESPACE: Final = "http://www.sitemaps.org/schemas/sitemap/0.9"


def has_pages(catalog: Catalog) -> bool:
    """Return True if there are declared pages that robots may read."""
    return bool(llms_txt.listed_pages(catalog))


def has_sitemap(catalog: Catalog) -> bool:
    """Return True if we publish a sitemap."""
    return has_pages(catalog) and catalog.publishes("sitemap")


def render_sitemap(catalog: Catalog) -> bytes:
    """Return sitemap.xml (sitemaps.org protocol 0.9): the declared pages."""
    updated = catalog.site.updated
    modified = f"<lastmod>{updated.date().isoformat()}</lastmod>" if updated is not None else ""
    urls = [
        f"<url><loc>{escape(catalog.absolute(page.path))}</loc>{modified}</url>"
        for page in llms_txt.listed_pages(catalog)
    ]
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{NAMESPACE}">{"".join(urls)}</urlset>\n'.encode()


def render_sitemap_md(catalog: Catalog) -> bytes:
    """Return sitemap.md: a link for each declared page, to its Markdown if there is one."""
    listed = llms_txt.page_links(catalog) or [
        f"- [{link_text(page.title)}]({catalog.absolute(page.path)})" for page in llms_txt.listed_pages(catalog)
    ]
    return "\n".join([f"# Sitemap of {one_line(catalog.site.name)}", "", *listed, ""]).encode()


# --- security.txt (RFC 9116) ---

SECURITY_PATH: Final = "/.well-known/security.txt"


def has_security(catalog: Catalog) -> bool:
    """Return True if the site says where to report vulnerabilities."""
    return catalog.site.security is not None


def render_security(catalog: Catalog) -> bytes:
    """Return security.txt, in the order of RFC 9116 section 2.5."""
    security = catalog.site.security
    if security is None or not isinstance(security.expires, datetime):
        return b""
    lines = [f"Contact: {absolute_if(catalog, contact)}" for contact in security.contact]
    lines.append(f"Expires: {security.expires.isoformat(timespec='seconds').replace('+00:00', 'Z')}")
    lines += [f"Preferred-Languages: {', '.join(security.languages)}"] if security.languages else []
    lines.append(f"Canonical: {catalog.absolute(SECURITY_PATH)}")
    lines += [f"Policy: {absolute_if(catalog, security.policy)}"] if security.policy else []
    return ("\n".join(lines) + "\n").encode()


# --- auth.md ---

AUTH_PATH: Final = "/auth.md"


def has_credentials(catalog: Catalog) -> bool:
    """Return True if it is known how callers authenticate."""
    return credentials_of(catalog) is not None


def render_auth(catalog: Catalog) -> bytes:
    """Return auth.md, which tells agents how to authenticate."""
    site, declared = catalog.site, catalog.site.authentication
    lines = ["# auth.md", "", f"How agents authenticate with {one_line(site.name)}.", ""]
    for way in credentials_of(catalog) or ():
        if way.get("in") == "header":
            scheme = f"{way['scheme']} " if "scheme" in way else ""
            lines.append(f"- **{way['method']}**: send the header `{way['name']}: {scheme}...`.")
        else:
            begins = f" Begin one with {way['sign_in']}." if "sign_in" in way else ""
            cookie = f" It sets the cookie `{way['name']}`." if "name" in way else ""
            lines.append(
                f"- **{way['method']}**: requests belong to a session.{begins}{cookie} Callers that keep no cookies "
                "show the `AWP-Session` header of its answer in the header `AWP-Session` of what they send."
            )
    if declared is not None and declared.authorization_servers:
        issuers = ", ".join(declared.authorization_servers)
        lines += ["", f"Tokens are issued by {issuers}; see {catalog.absolute(PROTECTED_RESOURCE_PATH)} (RFC 9728)."]
        if declared.is_own_server:
            server, own = own_metadata(catalog), declared.endpoints["connections"]
            lines += [
                "",
                "People sign in on this site's own pages, and allow an agent to act for them; no agent is given a "
                f"password. {server} describes the server (RFC 8414): authorization code with PKCE (S256). Clients "
                "have a client id metadata document, or register. People see and end what they have allowed at "
                f"{catalog.absolute(own)}.",
            ]
            for scope, words in declared.scopes.items():
                lines += [f"- scope `{scope}`: {one_line(words)}"]
    needing = [action for action in catalog.actions if action.auth_required]
    if needing:
        lines += ["", "## Actions that require authentication", ""]
        for action in needing:
            scopes = f" with the scopes {', '.join(action.scopes)}" if action.scopes else ""
            lines.append(f"- `{action.id}`{scopes}")
    if begun := sign_in_of(catalog):
        lines += ["", f"To sign in: {begun}."]
    return ("\n".join(lines) + "\n").encode()


ROBOTS: Final = Protocol("robots", documents=(Document(ROBOTS_PATH, TEXT, render_robots, is_fallback=True),))
SITEMAP: Final = Protocol(
    "sitemap",
    documents=(
        Document(SITEMAP_PATH, "application/xml", render_sitemap, condition=has_pages, is_fallback=True),
        Document(llms_txt.SITEMAP_MD_PATH, MARKDOWN, render_sitemap_md, condition=has_pages, is_fallback=True),
    ),
)
SECURITY: Final = Protocol(
    "security_txt",
    documents=(Document(SECURITY_PATH, TEXT, render_security, condition=has_security, is_fallback=True),),
)
AUTH_MD: Final = Protocol(
    "auth_md", documents=(Document(AUTH_PATH, MARKDOWN, render_auth, condition=has_credentials, is_fallback=True),)
)
