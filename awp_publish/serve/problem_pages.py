"""A page for each problem type: the `type` of a problem resolves to words for people (RFC 9457, section 3.1.1)."""

from collections.abc import Iterator, Mapping
from functools import partial
from html import escape
from typing import Final

from awp_publish.model import Catalog
from awp_publish.problems import ALL, Refused, code_of, slug_of
from awp_publish.protocols.protocol import Document

MEDIA_TYPE: Final = "text/html; charset=utf-8"
MAX_AGE: Final = 3600
_STYLE: Final = (
    ":root{color-scheme:light dark}"
    "body{font:1.05rem/1.6 system-ui,sans-serif;max-width:42rem;margin:3rem auto;padding:0 1rem}"
    "dt{font-weight:600;margin-top:.75rem}dd{margin:0}code{font-size:.95em}"
)


def problem_documents(catalog: Catalog) -> Iterator[Document]:
    """One page for each built-in problem and each error code that the site declares, and an index."""
    base = catalog.paths.problems
    codes = {code_of(kind.slug) for kind in ALL} | set(catalog.site.errors)
    for code in sorted(codes):
        yield Document(f"{base}/{slug_of(code)}", MEDIA_TYPE, partial(_render_page, code), max_age=MAX_AGE)
    yield Document(base, MEDIA_TYPE, partial(_render_index, tuple(sorted(codes))), max_age=MAX_AGE)


def _facts(code: str, catalog: Catalog) -> Mapping[str, str]:
    kind = next((kind for kind in ALL if code_of(kind.slug) == code), Refused)
    own = code_of(kind.slug) == code
    return {
        "Code": code,
        "Status": str(kind.default_status) if own else "the status of the action's own answer",
        "Meaning": f"{kind.title}.",
        "What to do": catalog.site.errors.get(code, kind.default_recovery),
    }


def _render_page(code: str, catalog: Catalog) -> bytes:
    facts = _facts(code, catalog)
    rows = "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in facts.items())
    back = f'<p><a href="{escape(catalog.absolute(catalog.paths.problems))}">All problem types</a></p>'
    return _page(slug_of(code), catalog.site.name, f"<dl>{rows}</dl>{back}")


def _render_index(codes: tuple[str, ...], catalog: Catalog) -> bytes:
    base = catalog.absolute(catalog.paths.problems)
    rows = "".join(f'<li><a href="{escape(base)}/{slug_of(code)}">{slug_of(code)}</a></li>' for code in codes)
    return _page("Problem types", catalog.site.name, f"<ul>{rows}</ul>")


def _page(title: str, site: str, content: str) -> bytes:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)} · {escape(site)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body><main><h1>{escape(title)}</h1>{content}</main></body></html>"
    ).encode()
