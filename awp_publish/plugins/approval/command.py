"""`awp-publish approve`: lists what waits for its owner's approval, and approves it."""

from argparse import ArgumentParser, Namespace
from typing import Any

from awp_publish.plugin import Command, LoadedApplication
from awp_publish.problems import DeclarationError


def run(console: Any, application: LoadedApplication, options: Namespace) -> int:
    """Approve actions as they are now, then list what is new or has changed. Returns 1 if actions are still hidden."""
    approval = application.site.ask("approval")
    if approval is None:
        raise DeclarationError("site", "publishes every action without approval.", 'Write Site(plugins=["approval"]).')
    names, standing = options.names, approval.standing()
    if options.all:
        names = [row.action for row in standing if row.state in ("new", "changed")]
    if names or options.all:
        path, standing = approval.approve(*names), approval.standing()
        console.say(f"{path}: {len(names)} approved ({', '.join(names) or 'nothing was new or changed'})")
    waiting = [row for row in standing if row.state != "approved"]
    hidden = sum(row.state != "gone" for row in waiting)
    console.say(*map(str, waiting), f"{len(standing) - len(waiting)} approved, {hidden} hidden until approved")
    rows = [{"action": row.action, "state": row.state, "changed": list(row.changed)} for row in standing]
    console.json({"actions": rows, "hidden": hidden})
    return int(hidden > 0)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the actions that are approved."""
    rows = "approve these actions as they are now; without any, only list them"
    parser.add_argument("names", nargs="*", metavar="action", help=rows)
    parser.add_argument("--all", action="store_true", help="approve everything that is waiting")


APPROVE = Command(
    help="list what is waiting for approval, for a site with the plug-in approval",
    run=run,
    arguments=add_arguments,
    names="names",
)
