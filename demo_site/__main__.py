"""Run the bookshop: ``python -m demo_site``."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import uvicorn

from awp_publish import Paths
from demo_site.agents import DOORS
from demo_site.app import create_app

LIVE: Final = {"mcp": "MCP clients", "a2a": "A2A clients", "awp": "AWP (WebSocket)", "bridge": "actions.json runtimes"}


def main() -> None:
    """Read the options, say where the shop is, and serve it until interrupted."""
    options = read_options()
    for line in greeting(options.url, options.doors):
        print(line, flush=True)
    os.environ.setdefault("AWP_PUBLISH_OVERVIEW", "1")  # a shop to look at shows its owner's side, too
    app = create_app(url=options.url, database=options.database, doors=options.doors, with_search=True)
    uvicorn.run(app, host=options.host, port=options.port)


def read_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; what it leaves out comes from the environment or is settled here."""
    parser = argparse.ArgumentParser(prog="python -m demo_site", description="Serve the First Lines bookshop.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument(
        "--port", type=int, default=int(os.environ.get("PORT", "8000")), help="port (default: $PORT or 8000)"
    )
    parser.add_argument("--url", help="public origin, if it is not http://HOST:PORT")
    parser.add_argument("--database", type=Path, help="SQLite file to keep (default: a temporary one)")
    parser.add_argument(
        "--doors",
        nargs="*",
        choices=DOORS,
        default=DOORS,
        help="doors for agents besides plain HTTP and WoA (default: all)",
    )
    options = parser.parse_args(arguments)
    options.url = (options.url or f"http://{_reachable(options.host)}:{options.port}").rstrip("/")
    return options


def greeting(origin: str, doors: Sequence[str] = DOORS) -> list[str]:
    """Say which addresses to open."""
    paths = {door: getattr(Paths(), door) for door in doors}
    open_doors = [f"  {LIVE[door]:<18} {origin}{path}" for door, path in paths.items()]
    return [
        "First Lines is open.",
        f"  the shop           {origin}/",
        f"  search             {origin}/search?q=sea",
        f"  the same as JSON   curl -H 'Accept: application/json' '{origin}/search?q=sea'",
        f"  what agents read   {origin}/.well-known/woa.json",
        f"                     {origin}/.well-known/ai-actions.json",
        f"                     {origin}/agent.json",
        *open_doors,
        f"  connected agents   {origin}/agents/connections",
        f"  the owner's side   {origin}/agents",
        f"  what works         {origin}/agents/status",
        f"  OpenAPI            {origin}/openapi.json",
    ]


def _reachable(host: str) -> str:
    if host in {"0.0.0.0", "::"}:
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


if __name__ == "__main__":
    main()
