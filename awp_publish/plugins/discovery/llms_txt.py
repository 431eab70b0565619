"""llms.txt and llms-full.txt (llmstxt.org), the page that is read first: what the site is and how it is used.

llms.txt is short: one line an action, and the rules by which a call goes through. With it alone an agent can call every
action at the WoA door. llms-full.txt adds the schemas, the examples, the errors and the hints. The actions stand
before the first H2, as lists may there; below an H2 stand links, as the format asks, to Markdown alone.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from math import prod
from typing import Final
from urllib.parse import quote

from awp_publish.documents.members import (
    LLMS_TXT_PATH,
    WOA_PATH,
    credentials_of,
    located,
    markdown_address,
)
from awp_publish.documents.protocol import Document, Protocol
from awp_publish.model import SKILL_FILE, Catalog, Page
from awp_publish.plugins.discovery.own_skill import SKILLS, skill_name, skill_path
from awp_publish.plugins.discovery.prose import first_sentence, link_text, one_line
from awp_publish.plugins.discovery.signatures import json_text, signature

PATH: Final = LLMS_TXT_PATH

FULL_PATH: Final = "/llms-full.txt"

MEDIA_TYPE: Final = "text/plain; charset=utf-8"

MAX_PAGES: Final = 20
"""Pages that llms.txt lists; the sitemap has all of them."""

MAX_ADDRESSES: Final = 1000
"""Addresses of a page with placeholders that are listed."""

SITEMAP_MD_PATH: Final = "/sitemap.md"


def render(catalog: Catalog) -> bytes:
    site = catalog.site
    lines = [f"# {one_line(site.name)}", "", f"> {one_line(site.description)}"]
    lines += ["", *called] if (called := usage(catalog)) else []
    if listed := page_links(catalog):
        lines += ["", "## Pages", "", *listed[:MAX_PAGES]]
        if len(listed) > MAX_PAGES and catalog.publishes("sitemap"):
            lines.append(f"- [All {len(listed)} pages]({catalog.absolute(SITEMAP_MD_PATH)})")
    if catalog.publishes("agent_skills"):
        names = [skill.name for skill in catalog.skills]
        own = [f"- [Skill]({catalog.absolute(skill_path(catalog))}): the actions in one file"]
        further = own if catalog.actions and skill_name(catalog) not in names else []
        for skill in catalog.skills:
            address = catalog.absolute(f"{SKILLS}/{skill.name}/{SKILL_FILE}")
            further.append(f"- [{skill.name}]({address}): {one_line(skill.description)}")
        lines += ["", "## Documents", "", *further] if further else []
    return ("\n".join(lines) + "\n").encode()


def render_full(catalog: Catalog) -> bytes:
    """Return llms-full.txt: the same, how to begin, and the schemas, examples, hints and errors."""
    site, lines = catalog.site, [render(catalog).decode().rstrip("\n")]
    manifest = f", described in {catalog.absolute(WOA_PATH)}" if catalog.publishes("woa") else ""
    has_woa = bool(catalog.actions) and catalog.door("woa") is not None
    lines += ["", "## Getting started", ""] if has_woa or _doors(catalog) else []
    lines += [f"- WoA: {catalog.absolute(catalog.paths.invoke)}{manifest}"] if has_woa else []
    for name, path in _doors(catalog):
        address = catalog.absolute(path)
        lines.append(f"- {name}: {address.replace('http', 'ws', 1) if name == 'AWP' else address}")
    lines += ["", "## Reference"] if catalog.actions else []
    for action in catalog.actions:
        lines += ["", f"### {action.id}", "", action.description.strip(), "", f"Input: {json_text(action.inputs)}"]
        lines += ["", f"Output: {json_text(action.outputs)}"] if action.outputs else []
        lines += [f"Example: {json_text(example)}" for example in action.examples]
    for title, facts in (("Hints", site.hints), ("Errors", site.errors)):
        if facts:
            lines += ["", f"## {title}", "", *(f"- {name}: {one_line(text)}" for name, text in facts.items())]
    return ("\n".join(lines) + "\n").encode()


@lru_cache(maxsize=4)  # several documents are rendered from the same catalog in turn
def usage(catalog: Catalog) -> Sequence[str]:
    """Return the actions and the rules for calling them, in Markdown, without rules that no action needs.

    One line an action: `search_books {q, page?: 1..50}: Search the books. [30/minute, confirm]`
    """
    also = ", ".join(f"{name} {located(catalog, path)}" for name, path in _doors(catalog))
    has_envelope = catalog.door("woa") is not None
    if not catalog.actions or not (has_envelope or catalog.has_door("plain")):
        return [f"Call by {also}."] if also else []
    if has_envelope:
        template = catalog.absolute(catalog.paths.invoke.replace("{agent_id}", "NAME"))
        named = "" if "{agent_id}" in catalog.paths.invoke else '"agent": "NAME", '
        called = f'Call: POST {template} with JSON {{{named}"input": {{...}}}}'
    else:
        template = catalog.absolute(f"{catalog.paths.actions}/NAME")
        called = f"Call: POST {template} with the inputs as JSON (if 405: the method in Allow; GET takes a query)"
    lines = [f"{called}{f', or by {also}' if also else ''}. Errors are problem+json with a `recovery`.", ""]
    agents, has_one_key_field = {agent.id: agent for agent in catalog.agents}, len(_key_fields(catalog)) == 1
    groups = dict[str, list[str]]()  # by category, the first of an action's tags; those without one come first
    for action in sorted(catalog.actions, key=lambda action: bool(action.tags)):
        tag = one_line(action.tags[0]) if action.tags else ""
        name = action.agent_id
        if list(agents[name].operations) != ["default"]:
            name += f' ("operation": "{action.operation}")'
        marks = [f"after {' and '.join(action.requires)}"] if action.requires else []
        marks += ["sign in"] if action.auth_required else []
        marks += [f"scope {' '.join(action.scopes)}"] if action.scopes else []
        marks += ["confirm"] if action.needs_confirmation else []
        if action.idempotency:
            marks.append("key" if has_one_key_field else f"key as {action.idempotency.key_field}")
        marks += ["job"] if action.is_background else []
        marks += [str(action.rate_limit)] if action.rate_limit else []
        marked = f" [{', '.join(marks)}]" if marks else ""
        line = f"- {name} {signature(action.inputs)}: {first_sentence(action.description)}{marked}"
        groups.setdefault(tag, []).append(line)
    for tag, group_lines in groups.items():
        is_headed = bool(tag) and len(groups) > 1
        lines += [*([""] if lines[-1] else []), *([f"{tag}:", ""] if is_headed else []), *group_lines]
    rules = list(dict.fromkeys(_rules(catalog)))  # two authenticators may take the same header
    return [*lines, "", *(f"- {rule}" for rule in rules)] if rules else lines


def _doors(catalog: Catalog) -> list[tuple[str, str]]:
    return [(door.title, door.path) for door in catalog.doors if door.title]


def _rules(catalog: Catalog) -> Iterator[str]:
    actions = catalog.actions
    if catalog.sign_in is not None or any(action.auth_required for action in actions):
        for way in credentials_of(catalog) or ():
            if way.get("in") == "header":
                scheme = f"{way['scheme']} " if "scheme" in way else ""
                source = catalog.token_source
                token = f"; {source.id} answers with the token" if source is not None else ""
                if "metadata" in way:
                    token = f" with a token that your user allows (OAuth 2, {way['metadata']})"
                yield f"sign in: send the header `{way['name']}: {scheme}...`{token}"
            elif "sign_in" in way:
                is_action = any(action.id == way["sign_in"] for action in actions)
                how = f"call {way['sign_in']}" if is_action else f"go to {way['sign_in']}"
                yield f"sign in: {how}; then send its answer's AWP-Session as `session` beside `input`"
    if any(action.needs_confirmation for action in actions):
        yield (
            "confirm: answers 428 with `confirmation` {token, summary}; once your user agrees, repeat "
            "with the token as `confirmation` beside `input`"
        )
    if any(action.requires for action in actions):
        yield "after: call that action first, in the session or with its AWP-Receipt in `receipts` beside `input`"
    if fields := _key_fields(catalog):
        member = f"`{fields[0]}`" if len(fields) == 1 else "the member that is named"
        yield f"key: send {member} beside `input`; a repeated call then counts once"
    if any(action.is_background for action in actions):
        yield "job: answers 202; poll Location"


def _key_fields(catalog: Catalog) -> list[str]:
    return list(dict.fromkeys(action.idempotency.key_field for action in catalog.actions if action.idempotency))


def page_links(catalog: Catalog) -> list[str]:
    """Return a link to the Markdown of each page; none if pages are only HTML."""
    if catalog.door("som") is None:
        return []
    return [
        f"- [{link_text(page.title)}]({markdown_address(catalog, page)})"
        + (f": {re.split(r'[:;,]|[.!?](?= |$)', one_line(page.description))[0]}." if page.description else "")
        for page in listed_pages(catalog)
    ]


def listed_pages(catalog: Catalog) -> list[Page]:
    """Return the pages that robots may read, including each address of a page whose placeholders have few values.

    Only declared and included routes count: what others show may be for their visitor alone.
    """
    kept_out = tuple(catalog.site.robots.disallow)
    pages = dict[str, Page]()
    for page in catalog.pages:
        choices = [page.choices.get(name, ()) for name in page.placeholders]
        if page.path.count("{") != len(choices) or prod(map(len, choices)) > MAX_ADDRESSES:
            continue
        for values in product(*choices):
            path, title = page.path, ", ".join((page.title, *values))
            for name, value in zip(page.placeholders, values, strict=True):
                path = path.replace(f"{{{name}}}", quote(value, safe=""))
            if not path.startswith(kept_out):
                pages.setdefault(path, replace(page, path=path, title=title))
    declared = {page.path: page for page in catalog.pages}
    return [declared.get(path, page) for path, page in pages.items()]


PROTOCOL = Protocol(
    "llms_txt",
    documents=(
        Document(PATH, MEDIA_TYPE, render, rel="describedby", title="llms.txt", is_fallback=True, door="woa"),
        Document(FULL_PATH, MEDIA_TYPE, render_full, is_fallback=True, door="woa"),
    ),
)
