"""The door and the notice beside it."""

from datetime import UTC, datetime
from urllib.parse import urlencode
from xml.sax.saxutils import escape

from fastapi import FastAPI, Response

from awp_publish import Site
from demo_site import agents, books
from demo_site.answers import CurrentAnswer, page_responses
from demo_site.database import Database
from demo_site.models import About, Home

FEWEST_BOOKS_OF_A_SHOWN_SUBJECT = 10
SITEMAP = "http://www.sitemaps.org/schemas/sitemap/0.9"


def register_shop(app: FastAPI, site: Site, database: Database) -> None:
    """Add the home page and the page about the shop."""

    @app.get("/", response_model=Home, responses=page_responses())
    @site.page(title="The shop window")
    def show_home(answer: CurrentAnswer) -> Home | Response:
        """See what is in the window: today's opening line, the books on the front table, the subjects we shelve."""
        with database.reading() as connection:
            home = Home(
                opening=books.opening_of_the_day(connection, datetime.now(UTC).date()),
                front_table=books.front_table(connection),
                subjects=books.subjects(connection, at_least=FEWEST_BOOKS_OF_A_SHOWN_SUBJECT),
            )
        return answer.page("home.html", home)

    @app.get("/about", response_model=About, responses=page_responses())
    @site.page(title="About the shop")
    def show_about(answer: CurrentAnswer) -> About | Response:
        """Read what this shop is and where its facts come from."""
        with database.reading() as connection:
            number = books.count(connection)
        about = About(name=agents.NAME, description=agents.DESCRIPTION, books=number)
        return answer.page("about.html", about)

    @app.get("/sitemap.xml", include_in_schema=False)
    def show_sitemap() -> Response:
        """List every page that is the same for all visitors: the books, and what an author or a subject leads to."""
        with database.reading() as connection:
            shown = books.everything(connection)
        addresses = ["/", "/about", "/search"]
        addresses += [f"/books/{slug}" for slug in shown["slug"]]
        addresses += [f"/search?{urlencode({'q': text})}" for name in ("author", "subject") for text in shown[name]]
        changed = f"<lastmod>{agents.UPDATED.date().isoformat()}</lastmod>"
        urls = "".join(
            f"<url><loc>{escape(site.catalog.absolute(address))}</loc>{changed}</url>" for address in addresses
        )
        text = f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{SITEMAP}">{urls}</urlset>\n'
        return Response(text, media_type="application/xml", headers={"Cache-Control": "public, max-age=300"})
