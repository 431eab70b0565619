"""Checks of signals and attachments."""

from collections.abc import Iterator

from awp_publish.checks.engine import ERROR, WARNING, Finding, JsonObject, finding, shown
from awp_publish.checks.places import objects
from awp_publish.maps import rules
from awp_publish.plugins.actions_json.checks.specification import check, unknown_words


@check("actions-signal-event", ERROR, "Validation Rules", hint="Name the event of the page.")
def signals_without_event(document: JsonObject) -> Iterator[Finding]:
    """A signal that is enabled names its event."""
    for pointer, signal in objects(document, "/signals/[]"):
        if signal.get("ingestion") == "enabled" and not signal.get("event"):
            yield finding(f"{pointer}/event", f"The signal {shown(signal.get('name'))} is enabled and has no event.")


@check("actions-signal-direction", WARNING, "signals", hint="Write html_to_agent or bidirectional.")
def signals_to_pages(document: JsonObject) -> Iterator[Finding]:
    """Signals come from pages."""
    directions = rules.DIRECTIONS - {"agent_to_html"}
    yield from unknown_words(document, directions, "For a signal the direction", "/signals/[]/direction")


@check("actions-attachment-kind", WARNING, "attachments", hint="Runtimes install what they know.")
def unknown_attachments(document: JsonObject) -> Iterator[Finding]:
    """The kind of an attachment is a documented one."""
    yield from unknown_words(document, rules.ATTACHMENT_KINDS, "The kind of an attachment", "/attachments/[]/kind")
