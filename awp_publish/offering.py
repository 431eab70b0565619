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
    """`pages` are given as SOM and Markdown to requests that accept these, with `in_query` to `?format=` as well."""

    pages: bool = False
    in_query: bool = False


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
    if in_query and not pages:
        raise DeclarationError(
            "site",
            "page_formats_in_query: there are no formats to ask for without pages.",
            'Write pages=True, with pip install "awp-publish[pages]".',
        )
    return Offering(pages, in_query)
