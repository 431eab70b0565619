"""The options of the search over a site's own pages."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from awp_publish.schema.options import Count, Duration, Path, strict


@strict
@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The actions `search` and `fetch` over the site's own public pages.

    `by` is the site's own search, in place of the index: a function of the query, async or not, that returns results,
    each with a `title` and a `url` of this site. `sitemaps` are read besides `/sitemap.xml` and those that robots.txt
    names. Pages are read again `every` so often; at most `max_pages` of them are indexed, with `max_bytes` of texts.
    """

    by: Callable[..., Any] | None = None
    sitemaps: Sequence[Path] = ()
    every: Duration = "10m"
    max_pages: Count = 1_000
    max_bytes: Count = 67_108_864
