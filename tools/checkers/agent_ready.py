"""The rules of agent-ready 0.3.1 (github.com/StefanStanic/agent-ready), as its source has them.

It is in no registry, so this is our reading of its rules and not the tool itself. A rule that passes counts 1, one that
warns 0.6; what does not apply (OAuth where there is none, payments) is left out. The score is the share in percent.
"""

import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urljoin

import httpx

PASS, WARN, FAIL = 1.0, 0.6, 0.0
CRAWLERS: Final = "GPTBot|ChatGPT-User|ClaudeBot|CCBot|Google-Extended|PerplexityBot|Amazonbot|Bytespider"
USEFUL_RELS: Final = {
    "alternate",
    "service-desc",
    "describedby",
    "api-catalog",
    "authorization_server",
    "oauth-protected-resource",
}
OPENAPI_PATHS: Final = ("/openapi.json", "/swagger.json", "/api/openapi.json", "/.well-known/openapi.json")
SKILLS: Final = re.compile(r"^#{1,3}\s*skills\b|^\s*skills\s*:|\bagent skills\b|\bskill\b|\bmcp\b", re.I | re.M)
WEBMCP: Final = re.compile(r"webmcp|mcp-browser|browser-rendering|remote-mcp", re.I)


def scan(client: httpx.Client, origin: str) -> tuple[int, dict[str, float]]:
    """Return the score of 100, and what each rule that applies gives."""
    rules = dict(_judge(client, origin))
    return round(100 * sum(rules.values()) / len(rules)), rules


def _judge(client: httpx.Client, origin: str) -> Iterator[tuple[str, float]]:
    def get(path: str, accept: str = "*/*") -> httpx.Response:
        return client.get(urljoin(origin, path), headers={"Accept": accept}, follow_redirects=True)

    home, robots, llms = get("/"), get("/robots.txt"), get("/llms.txt")
    agents = re.search(r"^user-agent:\s*\S", robots.text, re.I | re.M)
    yield "robots-txt", FAIL if robots.status_code != 200 else PASS if agents else WARN
    sitemaps = [*re.findall(r"^sitemap:\s*(\S+)", robots.text, re.I | re.M), "/sitemap.xml", "/sitemap_index.xml"]
    yield "sitemap", PASS if any(_is_sitemap(get(address)) for address in sitemaps) else FAIL
    relations = {relation for link in home.headers.get_list("link") for relation in _relations(link)}
    yield "link-headers", PASS if relations & USEFUL_RELS else WARN if "link" in home.headers else FAIL
    yield "markdown-negotiation", PASS if _media_type(get("/", "text/markdown")) == "text/markdown" else WARN
    crawlers = re.search(rf"^user-agent:\s*({CRAWLERS})\s*$", robots.text, re.I | re.M)
    yield "ai-bot-rules", FAIL if robots.status_code != 200 else PASS if crawlers else WARN
    signals = re.search(r"^content-signal:", robots.text, re.I | re.M) or "content-signal" in home.headers
    yield "content-signals", PASS if signals else WARN
    yield "web-bot-auth", _web_bot_auth(get("/.well-known/http-message-signatures-directory"))
    yield "api-catalog", PASS if any(_is_openapi(_json(get(path))) for path in OPENAPI_PATHS) else WARN
    for rule, path in (("mcp-server-card", "/.well-known/mcp.json"), ("a2a-agent-card", "/.well-known/agent.json")):
        card = _json(get(path))
        yield rule, PASS if isinstance(card, dict) and isinstance(card.get("name"), str) and card["name"] else FAIL
    if llms.status_code == 200 and SKILLS.search(llms.text):
        yield "agent-skills", PASS
    else:
        yield "agent-skills", WARN if llms.status_code == 200 or SKILLS.search(home.text) else FAIL
    if WEBMCP.search(home.text):
        yield "webmcp", PASS
    elif _media_type(home) == "text/html":
        yield "webmcp", WARN
    server = [_json(get(f"/.well-known/{name}")) for name in ("oauth-authorization-server", "openid-configuration")]
    if any(isinstance(metadata, dict) and metadata.get("issuer") for metadata in server):
        yield "oauth-discovery", PASS
    resource = get("/.well-known/oauth-protected-resource")
    if resource.status_code == 200:
        metadata = _json(resource)
        yield "oauth-protected-resource", PASS if isinstance(metadata, dict) and metadata.get("resource") else FAIL


def _json(answer: httpx.Response) -> Any:
    if answer.status_code != 200:
        return None
    try:
        return answer.json()
    except ValueError:
        return None


def _media_type(answer: httpx.Response) -> str:
    content_type: str = answer.headers.get("content-type", "")
    return content_type.partition(";")[0].strip()


def _relations(link: str) -> Iterator[str]:
    for relations in re.findall(r';\s*rel="?([^";,]*)', link, re.I):
        yield from relations.lower().split()


def _is_sitemap(answer: httpx.Response) -> bool:
    return answer.status_code == 200 and re.search(r"<(urlset|sitemapindex)[\s>]", answer.text, re.I) is not None


def _is_openapi(document: Any) -> bool:
    if not isinstance(document, dict) or not (document.get("openapi") or document.get("swagger")):
        return False
    info = document.get("info") or {}
    return bool(info.get("title") and info.get("version") and document.get("paths"))


def _web_bot_auth(answer: httpx.Response) -> float:
    keys = (_json(answer) or {}).get("keys") or []
    kept = (
        bool(keys)
        and all(key.get("kid") and key.get("kty") for key in keys)
        and {"signature", "signature-input"} <= set(answer.headers)
        and answer.url.scheme == "https"
        and _media_type(answer) == "application/http-message-signatures-directory+json"
    )
    return PASS if kept else WARN if answer.status_code == 404 else FAIL
