"""Every application of Starlette that this process makes gets `AgentPublisher` around it, with all of its routes.

It is a plug-in of pytest, and can be imported before a server starts. Applications mounted in others get theirs too,
which no site would do, and which may change nothing either.
"""

from importlib.util import find_spec

from starlette.applications import Starlette
from starlette.types import ASGIApp

from awp_publish import AgentPublisher, Site


def add_publisher(kind: type[Starlette]) -> None:
    build = kind.build_middleware_stack

    def build_with_publisher(self: Starlette) -> ASGIApp:
        site = Site("Suite", "A project as its own tests know it.", url="https://testserver")
        site.include()
        return AgentPublisher(build(self), site=site)

    kind.build_middleware_stack = build_with_publisher  # type: ignore[method-assign]


add_publisher(Starlette)
if find_spec("fastapi") is not None:
    from fastapi import FastAPI

    if "build_middleware_stack" in vars(FastAPI):
        add_publisher(FastAPI)
