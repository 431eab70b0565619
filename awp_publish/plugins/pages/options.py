"""The options of pages."""

from dataclasses import dataclass

from awp_publish.schema.options import Flag, strict


@strict
@dataclass(frozen=True, slots=True)
class Pages:
    """HTML pages as Markdown and SOM, and ways to request them besides Accept.

    `in_query` also accepts `?format=som`, `?format=md` and, for whole pages in Markdown, `?content=all`. `shared_cache`
    means that the caches in front of the site respect Vary, so that they may store responses selected by Accept.
    """

    in_query: Flag = False
    shared_cache: Flag = False
