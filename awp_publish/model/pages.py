"""Pages, and what can be done on them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from awp_publish.model.offers import Complete


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the site.

    `path` is percent-encoded, below the site's url; if it has placeholders (`/books/{slug}`), the page stands for
    several addresses. `id` is the prefix of the names of everything declared on the page. `actions` are the ids of the
    actions whose forms are on the page. `choices` are the allowed values of its placeholders, if they are listed.
    `options` are those that plug-ins read (`Plugin.page_options`).
    """

    path: str
    title: str
    description: str | None = None
    id: str = ""
    guide: str | None = None
    actions: tuple[str, ...] = ()
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    complete: Complete | None = field(default=None, compare=False, repr=False)

    @property
    def placeholders(self) -> tuple[str, ...]:
        """The names of the placeholders in the path, in order."""
        return tuple(re.findall(r"\{([A-Za-z_]\w*)\}", self.path))

    @property
    def is_template(self) -> bool:
        """Return True if the page stands for several addresses. Such pages are not listed in sitemaps and the like."""
        return "{" in self.path
