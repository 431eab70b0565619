"""The door and the notice beside it."""

from datetime import UTC, datetime

from fastapi import FastAPI, Response

from awp_publish import Site
from demo_site import agents, books
from demo_site.answers import CurrentAnswer, page_responses
from demo_site.database import Database
from demo_site.models import About, Home

FEWEST_BOOKS_OF_A_SHOWN_SUBJECT = 10


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
