"""A page for each problem type, at the address that the `type` of a problem names."""

from collections.abc import Iterator
from functools import partial
from html import escape
from pathlib import Path
from string import Template
from typing import Final

from awp_publish.documents.members import unlinked_recoveries
from awp_publish.documents.protocol import Document
from awp_publish.model import Catalog
from awp_publish.problems import Problem, Refused, below, code_of, slug_of

MEDIA_TYPE: Final = "text/html; charset=utf-8"
MAX_AGE: Final = 3600

_PAGE: Final = Template(
    "".join(map(str.strip, Path(__file__).with_name("problems.html").read_text("utf-8").splitlines()))
)


def problem_documents(catalog: Catalog) -> Iterator[Document]:
    """Yield a page for each problem of the site, for each of its own error codes, and an index."""
    base = catalog.paths.problems
    kinds = dict.fromkeys(catalog.site.errors, Refused) | {code_of(kind.slug): kind for kind in catalog.problems}
    for code in sorted(kinds):
        render = partial(_render_page, code, kinds[code])
        yield Document(f"{base}/{slug_of(code)}", MEDIA_TYPE, render, max_age=MAX_AGE)
    yield Document(base, MEDIA_TYPE, partial(_render_index, tuple(sorted(kinds))), max_age=MAX_AGE)


def _render_page(code: str, kind: type[Problem], catalog: Catalog) -> bytes:
    is_own = code_of(kind.slug) == code
    status = str(kind.default_status) if is_own else "the status of the action's own answer"
    unlinked = unlinked_recoveries(catalog).get(code)
    recovery = catalog.site.errors.get(code) or unlinked or below(catalog.prefix, kind.default_recovery)
    facts = {"Code": code, "Status": status, "Meaning": f"{kind.title}.", "What to do": recovery}
    rows = "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in facts.items())
    index = escape(catalog.absolute(catalog.paths.problems))
    return _page(slug_of(code), catalog, f'<dl>{rows}</dl><p><a href="{index}">All problem types</a></p>')


def _render_index(codes: tuple[str, ...], catalog: Catalog) -> bytes:
    base = escape(catalog.absolute(catalog.paths.problems))
    types = "".join(f'<li><a href="{base}/{slug}">{slug}</a></li>' for slug in map(slug_of, codes))
    return _page("Problem types", catalog, f"<ul>{types}</ul>")


def _page(title: str, catalog: Catalog, content: str) -> bytes:
    return _PAGE.substitute(title=title, site=escape(catalog.site.name), content=content).encode()
