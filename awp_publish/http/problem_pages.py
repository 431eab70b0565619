"""A page for each problem type, at the address that the `type` of a problem names."""

from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

from awp_publish.documents.members import unlinked_recoveries
from awp_publish.documents.protocol import Document
from awp_publish.http.html import Pieces, tag
from awp_publish.model import Catalog
from awp_publish.problems import ALL, Problem, Refused, below, code_of, slug_of

MEDIA_TYPE: Final = "text/html; charset=utf-8"
MAX_AGE: Final = 3600

_FILL: Final = Pieces(Path(__file__).with_name("problems.html")).fill


def problem_documents(catalog: Catalog, more: Iterable[type[Problem]] = ()) -> Iterator[Document]:
    """Yield a page for each built-in problem, each of `more` and each error code of the site, and an index."""
    base = catalog.paths.problems
    kinds = dict.fromkeys(catalog.site.errors, Refused) | {code_of(kind.slug): kind for kind in (*ALL, *more)}
    for code in sorted(kinds):
        render = partial(_render_page, code, kinds[code])
        yield Document(f"{base}/{slug_of(code)}", MEDIA_TYPE, render, max_age=MAX_AGE)
    yield Document(base, MEDIA_TYPE, partial(_render_index, tuple(sorted(kinds))), max_age=MAX_AGE)


def _render_page(code: str, kind: type[Problem], catalog: Catalog) -> bytes:
    is_own = code_of(kind.slug) == code
    status = str(kind.default_status) if is_own else "the status of the action's own answer"
    unlinked = unlinked_recoveries(catalog).get(code)
    recovery = catalog.site.errors.get(code) or unlinked or below(catalog.prefix, kind.default_recovery)
    index = catalog.absolute(catalog.paths.problems)
    return _write_page(code, status, f"{kind.title}.", recovery, catalog.site.name, index)


@lru_cache(256)  # all catalogs of a site have the same pages
def _write_page(code: str, status: str, meaning: str, recovery: str, site: str, index: str) -> bytes:
    facts = {"Code": code, "Status": status, "Meaning": meaning, "What to do": recovery}
    rows = [(tag("dt", name), tag("dd", text)) for name, text in facts.items()]
    return _FILL("page", title=slug_of(code), site=site, facts=rows, index=index).encode()


def _render_index(codes: tuple[str, ...], catalog: Catalog) -> bytes:
    return _write_index(codes, catalog.site.name, catalog.absolute(catalog.paths.problems))


@lru_cache(16)
def _write_index(codes: tuple[str, ...], site: str, base: str) -> bytes:
    types = [tag("li", tag("a", slug_of(code), href=f"{base}/{slug_of(code)}")) for code in codes]
    return _FILL("page", title="Problem types", site=site, types=types).encode()
