"""`awp-publish traffic`: prints who called what, and how it ended."""

import asyncio
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from awp_publish.plugin import Command, DeclaredSite, LoadedApplication
from awp_publish.plugins.traffic.record import TrafficRecord, describe_traffic
from awp_publish.plugins.traffic.report import TrafficReport
from awp_publish.problems import StoreUnavailable


def run(console: Any, application: LoadedApplication, options: Namespace) -> int:
    """Print who called what in the last days, and how the calls ended."""
    site = application.declared
    record: TrafficRecord | None = site.ask("traffic")
    if record is None:
        console.warn(f'{application.target} keeps no traffic: it has Site(plugins=["no:traffic"])')
        return 1

    async def read() -> TrafficReport:
        try:
            return await record.read(options.days)
        finally:
            await site.store.close()

    try:
        report = asyncio.run(read())
    except StoreUnavailable as problem:
        console.warn(f"{application.target}: {problem.detail} {_store_remedy(site)}")
        return 2
    if not site.store.is_shared:
        words = 'its store is in memory, which other processes cannot read; use Site(store="sqlite:///agents.db")'
        console.warn(f"{application.target}: {words}")
    console.json_lines(report.lines())
    console.say(*describe_traffic(report).split("\n"))
    return 0


def _store_remedy(site: DeclaredSite) -> str:
    """Return what to give a command that cannot open the store of the application's server."""
    url = site.settings.store
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None:
        return "Run the command with the environment and in the directory of the server, which opens the same store."
    if parts.scheme == "sqlite":
        return (
            f"It is {Path.cwd() / parts.path[1:]}: run the command in the directory of the server, as a user who may "
            "read and write the file and its folder."
        )
    return (
        f"It is {parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}: run the command where that host can be "
        "reached, with the environment of the server (address, user and password)."
    )


def add_arguments(parser: ArgumentParser) -> None:
    """Add the number of days."""
    parser.add_argument("--days", type=_read_days, default=30, help="how many days, today among them (30)")


def _read_days(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 400:
        raise ArgumentTypeError(f"{text!r} is not a number of days from 1 to 400")
    return int(text)


TRAFFIC = Command(help="print who called what, and how it ended", run=run, arguments=add_arguments)
