"""A page that was asked for at the endpoint for pages."""

from awp_publish.problems.problem import Problem


class InvalidUrl(Problem):
    """The address is none, or not one of this site's own pages: others are never fetched."""

    slug = "invalid-url"
    title = "The address is not that of a page of this site"
    default_status = 400
    default_recovery = "Give url once, percent-encoded: an address below this site's own."


class PageNotFound(Problem):
    """There is no such page, or none that everybody may read. `status` is that of the page where it says more."""

    slug = "page-not-found"
    title = "There is no such page for everybody to read"
    default_status = 404
    default_recovery = "Check the address, or ask for the page itself, with Accept: application/som+json."
