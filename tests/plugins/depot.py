"""A shop whose actions take time, ask people and tell what has happened, for transcripts of the doors of plug-ins."""

import asyncio
from datetime import date
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Response, UploadFile
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse
from pydantic import BaseModel, Field, SecretStr

from awp_publish import AgentPublisher, Refused, report_progress
from tests.guarded import KEYS, known_callers, make_shop


class Shipped(BaseModel):
    """An order has left."""

    order_id: str
    carrier: Literal["post", "boat"] = "post"


class Sale(BaseModel):
    title: str = Field(title="Title </script><b>")
    total: float


class Box(BaseModel):
    kind: Annotated[str, Field(min_length=2, max_length=9, pattern="^[a-z]+$")]
    weights: Annotated[list[float], Field(min_length=1, max_length=3)] = [1.5]
    inner: dict[str, int] | None = None


def make_depot(plugins: list[Any], folder: Any, **options: Any) -> FastAPI:
    """Make the shop. `folder` gets the files of a skill."""
    site = make_shop(**{"plugins": plugins, "authenticate": known_callers(), "secret_keys": KEYS, **options})
    app = FastAPI()

    @site.agent("print_book", execution="async", idempotency="1h")
    async def print_book(title: str) -> dict[str, str]:
        """Print a book."""
        if title == "crash":
            raise RuntimeError("a secret of the site")
        if title == "refuse":
            raise Refused("Out of paper.")
        if title == "long":
            report_progress(0.5, "page 1")
            await asyncio.sleep(30)
        return {"printed": title}

    @site.agent("burn_book", execution="async", confirm="Burn {title}?", effect="irreversible")
    async def burn_book(title: str) -> str:
        """Burn a book."""
        return "ashes"

    @site.agent("bind_book", execution="async", auth_required=True)
    async def bind_book() -> str:
        """Bind a book."""
        return "bound"

    @site.agent("hide_book", execution="async", audience="buy")
    async def hide_book() -> str:
        """Hide a book."""
        return "hidden"

    @site.agent("wrap", confirm="Wrap {title}?")
    async def wrap(title: str) -> dict[str, str]:
        """Wrap a book."""
        return {"wrapped": title}

    @site.agent("count", effect="read")
    async def count(steps: int = 3) -> int:
        """Count."""
        for step in range(steps):
            report_progress(step / steps, f"step {step}")
            await asyncio.sleep(0.12)
        return steps

    @site.agent("ship", effect="write")
    async def ship(order_id: str, audience: str = "public", carrier: str = "post") -> str:
        """Ship an order."""
        await site.emit("shipped", {"order_id": order_id, "carrier": carrier}, audience=audience)
        return "shipped"

    @site.agent("sign_in", effect="write")
    async def sign_in(name: str, password: SecretStr) -> str:
        """Sign in."""
        return f"Hello, {name}."

    @site.agent("frame", effect="write")
    async def frame(pictures: list[UploadFile], title: str = "") -> list[str]:
        """Frame pictures."""
        return [f"{picture.filename} {picture.content_type} {(await picture.read()).hex()}" for picture in pictures]

    @site.agent("weigh", effect="idempotent", tags=["boxes"], examples=[{"weight": 1.5, "box": {"kind": "ab"}}])
    async def weigh(
        weight: Annotated[float, Field(gt=0, lt=1000, multiple_of=0.5, description="In pounds.")],
        box: Box,
        until: date | None = None,
        note: str | int = "none",
        size: Literal["small", "large"] = "small",
        is_fragile: bool = False,
    ) -> dict[str, Any]:
        """Weigh a box."""
        return {"weight": weight, "until": until, "note": "x" * (30_000 if weight > 900 else 3), "box": box}

    @site.agent("sales", effect="read")
    async def sales(days: Annotated[int, Field(ge=1, le=9)] = 2) -> list[Sale]:
        """List what was sold."""
        return [Sale(title="Emma", total=9.5)] * days

    @site.agent("stock", effect="read", audience="known")
    async def stock() -> list[Sale]:
        """List what there is."""
        return []

    @app.get("/opening", response_class=PlainTextResponse)
    @site.action("show_opening")
    async def show_opening() -> str:
        """Show the first line."""
        return "Call me\nIshmael."

    @app.get("/prices", response_class=Response)
    @site.action("export_prices")
    async def export_prices() -> Response:
        """Export all prices."""
        named = {"content-disposition": 'attachment; filename="prices of today.csv"'}
        return Response("title,cents\n", media_type="text/csv", headers=named)

    @app.get("/mine")
    @site.action("show_mine", auth_required=True)
    async def show_mine() -> HTMLResponse:
        """Show what is mine."""
        return HTMLResponse("<p>mine")

    @app.get("/books/{title}")
    async def show_book(title: str, kind: str = "") -> Response:
        """Show a book."""
        headers = {"cache-control": {"kept": "public, max-age=60", "own": "private, max-age=60"}.get(kind, "")}
        headers |= {"vary": "Accept-Language"} if kind == "language" else {}
        return HTMLResponse(f"<title>{title}</title><h1>{title}</h1>", 404 if title == "lost" else 200, headers)

    app.get("/moved")(lambda: RedirectResponse("/books/emma"))
    app.get("/away")(lambda: RedirectResponse("https://elsewhere.example/"))
    app.get("/data")(lambda: {"a": 1})
    site.page("/books/emma", title="Emma", description="A novel.")
    site.page("/books/{title}", title="A book", complete=lambda typed: ["emma", "evelina"])
    site.event("shipped", payload=Shipped)
    site.event("audited", payload=Sale, audience="scope:buy", description="Someone has looked.")

    @site.prompt("review")
    def review(title: str, tone: Literal["warm", "dry"] = "warm", length: Literal[100, 200] = 100) -> str:
        """Review a book."""
        return f"Review {title}, {tone}, in {length} words."

    @site.prompt("show", title="Show a cover")
    def show(kind: Literal["three", "four", "one", "text", "role", "blank", "object"] = "three") -> Any:
        messages: dict[str, list[Any]] = {
            "three": [("user", "iVBORw==", "image/png"), ("assistant", "A cover.")],
            "four": [("user", "iVBORw==", "image/png", "more")],
            "one": [("user",)],
            "text": [("user", "no bytes", "image/png")],
            "role": [("system", "Hello.")],
            "blank": [("user", "iVBORw==", "")],
            "object": [{"role": "user"}],
        }
        return messages[kind]

    @site.prompt("audit")
    @site.agent("audit", audience="buy")
    async def audit(year: Literal["2025", "2026"]) -> str:
        """Audit a year."""
        return f"Audit {year}."

    skill = folder / "pack_books"
    (skill / "pictures" / "old").mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: pack-books\ndescription: How to pack.\n---\nUse paper.\n")
    (skill / "pictures" / "box.png").write_bytes(b"\x89PNG\xff")
    (skill / "pictures" / "old" / "two words.txt").write_text("words")
    site.skill("pack_books", skill)
    app.add_middleware(AgentPublisher, site=site, check=False)
    return app
