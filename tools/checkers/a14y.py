"""The rules of a14y's scorecard 0.2.0 (github.com/timothyjordan/a14y, Agent Readability Spec), as its source has them.

a14y is in no registry, so this is our reading of its rules and not the tool itself: fourteen of the site, and
twenty-four of each page that is found from sitemap.xml, llms.txt, sitemap.md and the links of pages. Each that applies
counts the same, on each page; the score is the share that passes, in percent.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urldefrag, urljoin, urlsplit
from urllib.robotparser import RobotFileParser
from xml.etree import ElementTree

import httpx
from selectolax.lexbor import LexborHTMLParser

BOTS: Final = ("GPTBot", "ClaudeBot", "CCBot", "Google-Extended")
MAX_PAGES: Final = 500
MARKDOWN_LINK: Final = re.compile(r"\[[^\]]+\]\(([^)\s]+)")
SITEMAP: Final = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
SECTIONS: Final = (
    r"\b(install(ation)?|getting started|quickstart)\b",
    r"\b(configuration|config|settings|options)\b",
    r"\b(usage|examples?|how to|reference|api)\b",
)
NOT_PAGES: Final = re.compile(r"\.(md|mdx|json|xml|txt|css|js|svg|png|jpe?g|gif|webp|pdf)$", re.IGNORECASE)
OF_THE_API: Final = re.compile(r"/(api|reference|endpoints?|swagger|openapi)\b", re.IGNORECASE)
SCHEMA_FILES: Final = ("openapi.json", "swagger.json", "swagger.yaml", "schema.json")


@dataclass
class Report:
    """What was found: how many rules pass, and the rules that fail with the address where they do."""

    pages: int = 0
    passed: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)

    @property
    def score(self) -> int:
        return round(100 * self.passed / max(self.passed + len(self.failed), 1))

    def note(self, rule: str, address: str, *, passes: bool) -> None:
        if passes:
            self.passed += 1
        else:
            self.failed.append((rule, address))


def scan(client: httpx.Client, origin: str, max_pages: int = MAX_PAGES) -> Report:
    """Judge a site by the rules of the site and, of each page that is found, by those of a page."""
    report = Report()
    announced = {urljoin(origin, address) for address in _judge_site(report, client, origin)}
    waiting, seen = [*sorted(announced), urljoin(origin, "/")], set[str]()
    while waiting and len(seen) < max_pages:
        address = waiting.pop(0)
        if address in seen:
            continue
        seen.add(address)
        answer = client.get(address, headers={"accept": "text/html"}, follow_redirects=True)
        report.pages += 1
        is_html = "text/html" in answer.headers.get("content-type", "")
        page = LexborHTMLParser(answer.text if is_html else "")
        _judge_page(report, client, answer, page, announced)
        for link in page.css("a[href]"):
            found = urldefrag(urljoin(str(answer.url), link.attributes["href"] or "")).url
            if urlsplit(found).netloc == urlsplit(origin).netloc:
                waiting.append(found)
    return report


def _judge_site(report: Report, client: httpx.Client, origin: str) -> Iterator[str]:
    """Note the rules of the site, and yield the addresses that its indexes announce."""

    def fetch(*paths: str) -> httpx.Response | None:
        answers = (client.get(urljoin(origin, path), follow_redirects=True) for path in paths)
        return next((answer for answer in answers if answer.is_success), None)

    llms = fetch("/llms.txt", "/.well-known/llms.txt", "/docs/llms.txt", "/llms-full.txt")
    report.note("llms-txt.exists", origin, passes=llms is not None)
    if llms is not None:
        links = MARKDOWN_LINK.findall(llms.text)
        of_markdown = [re.split(r"[?#]", link)[0].endswith((".md", ".mdx")) for link in links]
        report.note("llms-txt.content-type", origin, passes="text/plain" in llms.headers["content-type"])
        report.note("llms-txt.non-empty", origin, passes=bool(llms.text.strip()))
        report.note("llms-txt.md-extensions", origin, passes=bool(links) and all(of_markdown))
        yield from links
    robots = fetch("/robots.txt")
    report.note("robots-txt.exists", origin, passes=robots is not None)
    rules = RobotFileParser()
    rules.parse(robots.text.splitlines() if robots is not None else [])
    files = ("/llms.txt", "/.well-known/llms.txt")
    report.note("robots-txt.allows-ai-bots", origin, passes=all(rules.can_fetch(bot, origin + "/") for bot in BOTS))
    report.note("robots-txt.allows-llms-txt", origin, passes=all(rules.can_fetch("*", origin + file) for file in files))
    sitemap = fetch("/sitemap.xml", "/sitemap_index.xml", "/sitemap-index.xml")
    report.note("sitemap-xml.exists", origin, passes=sitemap is not None)
    if sitemap is not None:
        urls = list(ElementTree.fromstring(sitemap.content).iter(f"{SITEMAP}url"))
        report.note("sitemap-xml.valid", origin, passes=b"<urlset" in sitemap.content)
        has_dates = bool(urls) and all(url.findtext(f"{SITEMAP}lastmod") for url in urls)
        report.note("sitemap-xml.has-lastmod", origin, passes=has_dates)
        yield from (url.findtext(f"{SITEMAP}loc") or "" for url in urls)
    listed = fetch("/sitemap.md", "/docs/sitemap.md", "/.well-known/sitemap.md")
    report.note("sitemap-md.exists", origin, passes=listed is not None)
    if listed is not None:
        links = MARKDOWN_LINK.findall(listed.text)
        is_structured = bool(links) and re.search(r"^#+\s", listed.text, re.MULTILINE) is not None
        report.note("sitemap-md.has-structure", origin, passes=is_structured)
        yield from links
    guide = fetch("/AGENTS.md", "/agents.md", "/.well-known/agents.md", "/docs/AGENTS.md", "/llms-full.txt")
    report.note("agents-md.exists", origin, passes=guide is not None)
    if guide is not None:
        headings = "\n".join(re.findall(r"^#{1,6}\s.+$", guide.text, re.MULTILINE))
        known = [section for section in SECTIONS if re.search(section, headings, re.IGNORECASE)]
        report.note("agents-md.has-min-sections", origin, passes=len(known) >= 2)


def _judge_page(
    report: Report, client: httpx.Client, answer: httpx.Response, page: LexborHTMLParser, announced: set[str]
) -> None:
    address, kind = str(answer.url), answer.headers.get("content-type", "").lower()

    def note(rule: str, *, passes: bool) -> None:
        report.note(rule, address, passes=passes)

    def attribute(selector: str, name: str) -> str:
        found = page.css_first(selector)
        return (found.attributes.get(name) or "").strip() if found is not None else ""

    path = urlsplit(address).path
    note("http.status-200", passes=answer.status_code == 200)
    note("http.redirect-chain", passes=len(answer.history) <= 1)
    if not NOT_PAGES.search(path):
        note("http.content-type-html", passes="text/html" in kind and "utf-8" in kind)
    response = answer.headers.get("x-robots-tag", "")
    note("http.no-noindex-noai", passes=not re.search("noindex|noai|noimageai", response, re.IGNORECASE))
    note("discovery.indexed", passes=address in announced)
    if "text/html" not in kind:
        return
    note("html.canonical-link", passes=bool(attribute('link[rel="canonical"]', "href")))
    note("html.meta-description", passes=len(attribute('meta[name="description"]', "content")) >= 50)
    note("html.og-title", passes=bool(attribute('meta[property="og:title"]', "content")))
    note("html.og-description", passes=bool(attribute('meta[property="og:description"]', "content")))
    note("html.lang-attribute", passes=bool(attribute("html", "lang")))
    nodes = list(_nodes([json.loads(element.text()) for element in page.css('script[type="application/ld+json"]')]))
    note("html.json-ld", passes=bool(nodes))
    if nodes:
        note("html.json-ld.date-modified", passes=any(node.get("dateModified") for node in nodes))
        note("html.json-ld.breadcrumb", passes=any("BreadcrumbList" in str(node.get("@type")) for node in nodes))
    note("html.headings", passes=len(page.css("h1, h2, h3")) >= 3)
    text = " ".join(page.body.text().split()) if page.body is not None else ""
    note("html.text-ratio", passes=len(text) / max(len(answer.text), 1) > 0.15)
    note(
        "html.glossary-link",
        passes=any(re.search("(?i)glossary|terminology", element.text()) for element in page.css("a")),
    )
    base = path.rstrip("/").removesuffix(".html") or "/index"
    places = [f"{base}.md", f"{base}.mdx", *([f"{base}/index.md"] if path.endswith("/") else [])]
    mirrors = (client.get(urljoin(address, place), follow_redirects=True) for place in places)
    mirror = next((mirror for mirror in mirrors if mirror.is_success), None)
    note("markdown.mirror-suffix", passes=mirror is not None)
    note("markdown.alternate-link", passes=bool(attribute('link[rel="alternate"][type="text/markdown"]', "href")))
    if mirror is not None:
        front = re.match(r"---\r?\n(.*?)\n---\s*\n", mirror.text, re.DOTALL)
        known = set(re.findall(r"^([a-zA-Z_][\w-]*)\s*:", front[1], re.MULTILINE)) if front is not None else set()
        note("markdown.frontmatter", passes={"title", "description", "doc_version", "last_updated"} <= known)
        linked = re.search(r'rel\s*=\s*"?canonical"?', mirror.headers.get("link", ""))
        note("markdown.canonical-header", passes=linked is not None)
        note("markdown.sitemap-section", passes=re.search(r"^##\s+Sitemap\b", mirror.text, re.MULTILINE) is not None)
    negotiated = client.get(address, headers={"accept": "text/markdown"}, follow_redirects=True)
    note("markdown.content-negotiation", passes="text/markdown" in negotiated.headers.get("content-type", ""))
    if blocks := page.css("pre code"):
        classes = [
            f"{block.attributes.get('class')} {block.parent.attributes.get('class')}"
            for block in blocks
            if block.parent
        ]
        note("code.language-tags", passes=all(re.search(r"\b(language-|lang-)", case) for case in classes))
    if OF_THE_API.search(path):
        links = [element.attributes.get("href") or "" for element in page.css("a[href]")]
        note("api.schema-link", passes=any(link.endswith(SCHEMA_FILES) for link in links))


def _nodes(value: object) -> Iterator[dict[str, object]]:
    if isinstance(value, list):
        for item in value:
            yield from _nodes(item)
    elif isinstance(value, dict):
        yield value
        yield from _nodes(value.get("@graph"))
