"""`awp-publish approve`: what waits for the owner's approval."""

from collections.abc import Sequence

from awp_publish.commands.application import Application
from awp_publish.commands.console import Console
from awp_publish.site import Site


def approve(console: Console, target: str, names: Sequence[str], *, approves_all: bool) -> int:
    """Approve actions as they are now, then list what is new or has changed. Returns 1 while something waits."""
    return approve_of(console, Application(target).site, names, approves_all=approves_all)


def approve_of(console: Console, site: Site, names: Sequence[str], *, approves_all: bool) -> int:
    """The same for a site that is at hand. Raises DeclarationError."""
    standing = site.approvals()
    if approves_all:
        names = [one.action for one in standing if one.state in ("new", "changed")]
    if names or approves_all:
        path, standing = site.approve(*names), site.approvals()
        console.say(f"{path}: {len(names)} approved ({', '.join(names) or 'nothing was new or changed'})")
    waiting = [one for one in standing if one.state != "approved"]
    hidden = sum(one.state != "gone" for one in waiting)
    console.say(*map(str, waiting), f"{len(standing) - len(waiting)} approved, {hidden} hidden until they are")
    told = [{"action": one.action, "state": one.state, "changed": list(one.changed)} for one in standing]
    console.json({"actions": told, "hidden": hidden})
    return int(hidden > 0)
