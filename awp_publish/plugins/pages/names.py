"""The names under which reads of pages are counted: declared pages, and the templates of routes.

A path may hold a secret (`/reset/{token}`), and callers choose paths freely. So nothing of a path is ever a name: reads
of a page that neither a declaration nor a route stands for are counted together.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from awp_publish.model import Catalog
from awp_publish.schema.paths import pattern_of

OTHERS: Final = "(others)"
"""The name of all pages that have none."""

MAX_PATH: Final = 500
"""Characters of a path up to which it is compared with templates."""


class PageNames:
    """The names of the pages of one application. `catalogs` are those of the site's addresses, `routes` all routes.

    Routes of actions that not everybody may see, and routes that are kept out of what is published (an admin panel's,
    for example), give no names.
    """

    def __init__(self, catalogs: Sequence[Catalog], routes: Iterable[Any]) -> None:
        self._urls = sorted((catalog.url for catalog in catalogs), key=len, reverse=True)
        catalog = catalogs[0]
        hidden = {
            action.target.path for action in catalog.actions if action.target is not None and not action.is_public
        }
        listed = [route for route in routes if not route.kept_out and route.template not in hidden]
        names: dict[str, str] = {}
        for page in catalog.pages:
            names.setdefault(unquote(page.path), page.path)
        for route in listed:
            names.setdefault(route.path, route.template)
        self._fixed = {path: name for path, name in names.items() if "{" not in path}
        self._templates = [(re.compile(pattern_of(path)), name) for path, name in names.items() if "{" in path]

    def name_of(self, url: str) -> str:
        """Return the name of the page at a URL of the site."""
        path = next((url[len(own) :] for own in self._urls if url.startswith(own)), urlsplit(url).path)
        path = unquote(urlsplit(path).path) or "/"
        if len(path) > MAX_PATH:
            return OTHERS
        return self._fixed.get(path) or next(self._matching(path), OTHERS)

    def _matching(self, path: str) -> Iterator[str]:
        return (name for pattern, name in self._templates if pattern.fullmatch(path))
