"""What agents can do in a project of `wagtail start`, whose pages are all served by one catch-all pattern."""

from awp_publish import Site

site = Site(name="Bakery", description="Bakes bread.", url="https://bakery.example", plugins=["mcp"])
site.include()
site.page("/")
site.page("/bread/")
site.declare("read_page", method="GET", path="/{path}", description="Read a page.")
site.declare(
    "contact",
    method="POST",
    path="/contact/",
    description="Write to the bakery.",
    content_type="application/x-www-form-urlencoded",
    inputs={"type": "object", "properties": {"email": {"type": "string"}}, "required": ["email"]},
)
