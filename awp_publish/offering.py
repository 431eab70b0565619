"""Whether a site gives its pages in the formats that agents read, and how they may be asked for."""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from awp_publish.options import SiteOptions
from awp_publish.problems import DeclarationError

PACKAGE: Final = "selectolax"
"""What reads HTML; it comes with the extra [pages]."""


@dataclass(frozen=True, slots=True)
class Offering:
    """`pages` are given as SOM and Markdown to requests that accept these, with `in_query` to `?format=` as well.

    With `in_shared_cache` the caches in front of the site heed Vary, and may keep what Accept has chosen.
    """

    pages: bool = False
    in_query: bool = False
    in_shared_cache: bool = False


def read_offering(options: SiteOptions) -> Offering:
    """What the options say. Without a word, pages are given where the extra is installed.

    Raises DeclarationError for what cannot be had.
    """
    wanted, in_query = options.get("pages"), options.get("page_formats_in_query", False)
    is_installed = find_spec(PACKAGE) is not None
    if wanted and not is_installed:
        raise DeclarationError(
            "site", "pages: needs a package that is missing.", 'Install it: pip install "awp-publish[pages]".'
        )
    pages = is_installed if wanted is None else wanted
    in_shared_cache = options.get("page_formats_in_shared_cache", False)
    for name, is_asked_for in (("query", in_query), ("shared_cache", in_shared_cache)):
        if is_asked_for and not pages:
            raise DeclarationError(
                "site",
                f"page_formats_in_{name}: there are no formats without pages.",
                'Write pages=True, with pip install "awp-publish[pages]".',
            )
    return Offering(pages, in_query, in_shared_cache)
