"""A FastAPI application around one handler."""

from typing import Any

from fastapi import FastAPI


def taking(site, handler, *, method: str = "post", path: str = "/x", **options: Any) -> FastAPI:
    app = FastAPI()
    handler.__doc__ = "Take it."
    getattr(app, method)(path, **options)(site.action("take")(handler))
    return app
