"""Routes that are included, and what is no application."""

from fastapi import FastAPI

from awp_publish import AgentPublisher, Site

site = Site(name="Shop", description="A shop.", url="https://shop.example")
inner = FastAPI()


@inner.get("/books")
async def list_books() -> list[str]:
    """List books."""
    return []


@inner.post("/books")
async def add_book(title: str) -> str:
    return title


site.include()
app = AgentPublisher(inner, site=site)
word = "app"


def create_app() -> AgentPublisher:
    return app


class Endless:
    def __init__(self) -> None:
        self.app = self

    async def __call__(self, scope: object, receive: object, send: object) -> None:
        pass


endless = Endless()
