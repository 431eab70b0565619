"""The eleven rules of isitagentready (github.com/PromptMention/isitagentready), as its source has them.

It is in no registry, so this is our reading of its rules and not the tool itself.
"""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import urljoin
from xml.etree import ElementTree

import httpx

CRAWLERS: Final = "gptbot|claude-web|anthropic-ai|google-extended|perplexitybot|ccbot|bytespider"
WELL_KNOWN: Final = (
    "api-catalog",
    "oauth-protected-resource",
    "mcp/server-card.json",
    "agent-skills/index.json",
)


def scan(client: httpx.Client, origin: str) -> dict[str, bool]:
    """Return whether each of the rules is kept."""
    return dict(_judge(client, origin))


def _judge(client: httpx.Client, origin: str) -> Iterator[tuple[str, bool]]:
    def get(path: str, accept: str = "*/*") -> httpx.Response:
        return client.get(urljoin(origin, path), headers={"Accept": accept}, follow_redirects=True)

    def is_there(name: str) -> bool:
        return get(f"/.well-known/{name}").status_code == 200

    robots = get("/robots.txt")
    lines = "" if robots.status_code == 404 else robots.text
    is_plain = robots.status_code == 200 and "text/plain" in robots.headers.get("content-type", "")
    yield "robots-txt", is_plain and re.search(r"^user-agent:", lines, re.I | re.M) is not None
    sitemaps = re.findall(r"^\s*sitemap:\s*(\S+)", lines, re.I | re.M) or ["/sitemap.xml"]
    yield "sitemap", robots.status_code != 404 and any(_is_xml(get(address)) for address in sitemaps)
    yield "link-headers", "link" in get("/").headers
    markdown = get("/", "text/markdown")
    is_markdown = "text/markdown" in markdown.headers.get("content-type", "")
    yield "markdown-negotiation", markdown.status_code == 200 and is_markdown
    yield "ai-bot-rules", re.search(CRAWLERS, lines, re.I) is not None
    yield "content-signals", re.search(r"^content-signal:", lines, re.I | re.M) is not None
    yield "oauth-discovery", is_there("openid-configuration") or is_there("oauth-authorization-server")
    for name in WELL_KNOWN:
        yield name, is_there(name)


def _is_xml(answer: httpx.Response) -> bool:
    if answer.status_code != 200:
        return False
    try:
        ElementTree.fromstring(answer.content)
    except ElementTree.ParseError:
        return False
    return True
