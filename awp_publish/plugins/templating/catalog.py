"""The catalog of a site for templates, and what they look up in it."""

from typing import Final, Literal, ParamSpec, Protocol, TypeAlias

from awp_publish.model import Catalog

Style: TypeAlias = Literal["data-awas", "data-ai", "tool"]
"""AWAS 1.0's attributes are data-awas-*, AWAS 1.1's data-ai-*; WebMCP's make a form a tool. A page may have all."""

P = ParamSpec("P")

AWAS: Final[tuple[Style, ...]] = ("data-awas",)


class HasCatalog(Protocol):
    """The part of a site that templates need."""

    @property
    def catalog(self) -> Catalog: ...
