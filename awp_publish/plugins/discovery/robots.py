"""robots.txt: which crawlers may read what, and where agents begin."""

from typing import Final

from awp_publish.documents.members import ARD_PATH, absolute_if, located
from awp_publish.documents.protocol import Document, Protocol
from awp_publish.model import Catalog, Robots
from awp_publish.plugins.discovery.ard import has_interfaces
from awp_publish.plugins.discovery.sitemaps import SITEMAP_PATH, has_sitemap

ROBOTS_PATH: Final = "/robots.txt"

TEXT: Final = "text/plain; charset=utf-8"

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


ROBOTS: Final = Protocol("robots", documents=(Document(ROBOTS_PATH, TEXT, render_robots, is_fallback=True),))
