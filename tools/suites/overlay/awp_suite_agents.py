"""A site that publishes all routes of a Django project."""

from awp_publish import ApplicationUser, Site

site = Site("Suite", "A project as its own tests know it.", url="https://testserver", authenticate=ApplicationUser())
site.include()
