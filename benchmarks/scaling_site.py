"""`python -m benchmarks.scaling_site PORT`: the measured site, or the same without us, under uvicorn.

The environment says which: KIND is "bare", "open", "guarded", "leased", "in total" or "documents"; STORE a URL.
"""

import os
import sys
from typing import Final

import uvicorn
from fastapi import FastAPI

from awp_publish import AgentPublisher, BearerToken, Limits, Site
from awp_publish.http.exchange import AsgiApp
from benchmarks.shop import Order, Receipt, order_books

CALLERS: Final = 64
KEYS: Final = ["a-secret-key-of-the-benchmark-alone"]
RATES: Final = {
    "guarded": "900000/minute",
    "in total": "900000/minute in total",
    "leased": "900000/minute in total, 100 at a time",
}


def make() -> AsgiApp:
    """Make the application that the environment names."""
    kind = os.environ["KIND"]
    app = FastAPI(title="Bookshop")
    app.post("/orders")(order_books)
    if kind == "bare":
        return app
    is_guarded = kind in RATES
    site = Site(
        "Bookshop",
        "Find, read about and order public-domain books.",
        os.environ.get("ADDRESS", "https://books.example"),
        store=os.environ["STORE"],
        secret_keys=KEYS,
        limits=Limits(rate_limit=RATES.get(kind)),
        authenticate=[BearerToken({f"token-of-caller-{number}": str(number) for number in range(CALLERS)})],
    )

    async def order(order: Order) -> Receipt:
        """Order books; the answer is the receipt."""
        return await order_books(order)

    site.agent("order", effect="write", auth_required=is_guarded, idempotency="24h" if kind == "guarded" else None)(
        order
    )
    return AgentPublisher(app, site)


def main(port: str) -> None:
    """Serve until terminated, on a port that other workers have, too."""
    options = {"log_level": "error", "access_log": False, "loop": "uvloop", "http": "httptools", "workers": 1}
    workers = int(os.environ.get("WORKERS", "1"))
    if workers > 1:
        options["workers"] = workers
        uvicorn.run("benchmarks.scaling_site:make", factory=True, port=int(port), **options)  # type: ignore[arg-type]
    else:
        uvicorn.run(make(), port=int(port), **options)  # type: ignore[arg-type]


if __name__ == "__main__":
    main(*sys.argv[1:])
