"""The first page: how a site is doing, how agents connect, what it publishes, and who came."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from awp_publish.plugins.overview.actions_table import Choice, actions_section
from awp_publish.plugins.overview.approval import Waiting, approval_section, read_waiting
from awp_publish.plugins.overview.callers import callers_section
from awp_publish.plugins.overview.connect import clients, connect_hint
from awp_publish.plugins.overview.figures import DAYS, month, outcome_tiles, tiles, traffic_section
from awp_publish.plugins.overview.html import Html, tag
from awp_publish.plugins.overview.markup import NO_FIGURE, bytes_of, code, count_words, fill, size_of, table, tokens_of
from awp_publish.plugins.overview.panels import ShownPanel, panel_section
from awp_publish.plugins.overview.view import CallCounts, RecordedTraffic, View


def dashboard(
    view: View, query: Mapping[str, object], notices: Mapping[str, Html], panels: Sequence[ShownPanel]
) -> Html:
    """Return the content of the first page. `notices` has the result of a form that was just sent, by section."""
    catalog, site = view.catalog, view.catalog.site
    report = None if isinstance(view.traffic, str) else view.traffic
    by_action = report.figures() if report is not None else {}
    waiting = read_waiting(view)
    buttons = clients(catalog, view.wires[0])
    sections = [*_sections(view, query, notices, by_action, waiting, panels)]
    if others := buttons.get(""):
        summary = tag("summary", "The MCP Inspector, and client libraries for Python and TypeScript")
        content = tag("details", summary, tag("div", others, class_="clients"))
        sections.append(("connect", "More clients", content))
    return fill(
        "overview",
        site=site.name,
        description=site.description,
        url=catalog.url,
        reader=_reader(view),
        status=_status(view),
        tiles=tiles(_first_tiles(report, waiting)),
        month=month(report) if report is not None else None,
        unread=view.traffic if isinstance(view.traffic, str) else None,
        untold="This site keeps no traffic: it leaves the plug-in traffic out." if view.traffic is None else None,
        buttons=[fill("connect_button", name=name, panels=panels) for name, panels in buttons.items() if name],
        hint=connect_hint(catalog),
        findings=_findings_bar(view),
        links=[tag("li", tag("a", re.sub(r" \(.*", "", title), href=f"#{ident}")) for ident, title, _ in sections],
        sections=[fill("section", ident=ident, title=title, content=content) for ident, title, content in sections],
    )


def _sections(
    view: View,
    query: Mapping[str, object],
    notices: Mapping[str, Html],
    by_action: Mapping[str, CallCounts],
    waiting: Waiting | None,
    panels: Sequence[ShownPanel],
) -> Iterable[tuple[str, str, object]]:
    """Yield the id, the title and the content of each section; those that would be empty are left out."""
    catalog, door = view.catalog, view.door
    if waiting is not None:
        title = f"Approval ({len(waiting.names)} waiting)" if waiting.unread is None else "Approval"
        yield "approval", title, approval_section(view, waiting, notices.get("approval"))
    yield "actions", f"Actions ({len(catalog.actions)})", actions_section(view, by_action, Choice.read(query))
    if view.traffic is not None:
        came = traffic_section(view.traffic, with_callers=view.is_restricted)
        yield "traffic", "Who came", (came, _connections(view))
    for panel in panels:
        count = f" ({len(panel.rows)})" if panel.rows else ""
        yield panel.plugin, f"{panel.panel.title}{count}", panel_section(view, panel, notices.get(panel.plugin))
    yield "sees", "What a caller sees", callers_section(view, str(query.get("sees", "")))
    if view.findings:
        yield "findings", f"Findings ({len(view.findings)})", _findings(view)
    yield "documents", f"Documents ({len(view.documents)})", _documents(view)
    pages = [
        (
            code(page.path) if page.is_template else tag("a", page.path, href=catalog.prefix + page.path),
            page.title,
            page.description,
        )
        for page in catalog.pages
    ]
    agents = [  # an agent with one operation is an action, and listed as such
        (code(agent.id), agent.name, agent.description, ", ".join(map(": ".join, agent.operations.items())))
        for agent in catalog.agents
        if len(agent.operations) > 1
    ]
    prompts = [
        (
            code(prompt.id),
            prompt.name,
            prompt.description,
            ", ".join(f"{arg.name}{'' if arg.required else ' (optional)'}" for arg in prompt.arguments),
        )
        for prompt in catalog.prompts
    ]
    left_out = [(code(f"{route.method} {route.path}"), route.name, route.why) for route in door.site.left_out]
    listings: tuple[tuple[str, str, str, tuple[str, ...], Sequence[tuple[object, ...]]], ...] = (
        ("pages", "Pages", "Pages", ("path", "title", "description"), pages),
        ("prompts", "Prompts", "Prompts", ("prompt", "name", "description", "arguments"), prompts),
        ("agents", "Agents", "Agents and their operations", ("agent", "name", "description", "operations"), agents),
        ("left-out", "Left out", "Routes that include() found and did not publish", ("route", "name", "why"), left_out),
    )
    for ident, title, caption, heads, rows in listings:
        if rows:
            yield (
                ident,
                f"{title} ({len(rows)})",
                table(caption, heads, rows, class_="rows titled" if caption == title else "rows"),
            )


def _connections(view: View) -> Html | None:
    """Return where people see which agents act for them, None if the site has no such page."""
    authentication = view.catalog.site.authentication
    path = authentication.endpoints.get("connections") if authentication is not None else None
    if path is None:
        return None
    return tag(
        "p",
        "People see their connected agents, and can disconnect them, at ",
        tag("a", path, href=view.catalog.prefix + path),
        ".",
        class_="hint",
    )


def _reader(view: View) -> object:
    if view.caller is None:
        return "You see this page as an anonymous visitor."
    scopes = sorted(view.caller.scopes)
    scope_words = f", with the scope{'s' * (len(scopes) > 1)} {', '.join(scopes)}" if scopes else ""
    return ("You are signed in as ", tag("b", view.caller.id), f"{scope_words}.")


def _status(view: View) -> Html:
    status = view.catalog.status
    degraded = sum(action.id in status.degraded_actions for action in view.catalog.actions)
    if not status.operational:
        return tag("span", "Not operational", class_="status failed")
    if degraded:
        return tag("span", f"{count_words(degraded, 'action')} degraded", class_="status refused")
    return tag("span", "Operational", class_="status ok")


def _first_tiles(report: RecordedTraffic | None, waiting: Waiting | None) -> list[tuple[object, ...]]:
    if report is not None:
        day, before = report.calls_on(report.days[-1]), report.calls_on(report.days[-2]) if report.days[1:] else 0
        whole = report.total()
        figures: list[tuple[object, ...]] = [
            ("Calls today", f"{day:,}", f"{before:,} yesterday, {whole.calls:,} in {DAYS} days"),
            *outcome_tiles(whole),
        ]
    else:
        figures = [
            (label, NO_FIGURE, "no figures") for label in ("Calls today", "Refused and failed", "95 % answered within")
        ]
    if waiting is None:
        return [*figures, ("Waiting for approval", NO_FIGURE, "approval is not required")]
    count = len(waiting.names)
    number = tag("a", f"{count:,}", href="#approval") if count else "0"
    note = "hidden until they are approved" if count else "every action is approved"
    return [*figures, ("Waiting for approval", number, note if waiting.unread is None else "the file cannot be read")]


def _findings_bar(view: View) -> Html | None:
    """Return how many errors and warnings there are, with the first of them, None if there are none."""
    if not view.findings:
        return None
    counts = {level: sum(finding.level == level for finding in view.findings) for level in ("error", "warning")}
    summary = " and ".join(count_words(count, level) for level, count in counts.items() if count)
    first = next((finding for finding in view.findings if finding.level == "error"), view.findings[0])
    kind = "failed" if counts["error"] else "refused"
    return fill("findings_bar", kind=kind, summary=summary or "Findings", first=first.message)


def _findings(view: View) -> Html:
    rows = (
        (
            tag("strong", finding.level, class_=finding.level),
            (code(f"{finding.document}#{finding.pointer}") if finding.document else "the site", " ", finding.subject),
            finding.message,
            (finding.hint, " ", tag("small", f"{finding.check}; {finding.source}")),
        )
        for finding in view.findings
    )
    return table("What the checks found", ("level", "where", "what", "remedy"), rows)


def _documents(view: View) -> Html:
    prefix, rows = view.door.catalog.prefix, list[Sequence[object]]()
    counts = Counter((finding.document, finding.level == "error") for finding in view.findings)
    for path, document in view.documents.items():
        compressed, full = document.variants[0].full, document.variants[-1].full
        headers = ((tag("dt", name.decode()), tag("dd", value.decode("latin-1"))) for name, value in full.headers)
        validity = tag("span", "no findings", class_="ok")
        for level in ("warning", "error"):
            if count := counts[path, level == "error"]:
                validity = tag("a", count_words(count, level), href="#findings", class_=level)
        rows.append(
            (
                tag("a", path, href=prefix + path),
                validity,
                bytes_of(len(document.body)),
                f"{tokens_of(len(document.body)):,}",
                f"{bytes_of(len(compressed.body))} ({document.codings[0]})",
                document.media_type,
                fill("headers", path=path, headers=headers),
            )
        )
    heads = ("path", "checked", "size", "tokens", "compressed", "type", "headers")
    return fill(
        "documents",
        table=table("Documents", heads, rows, class_="rows titled documents"),
        size=size_of(sum(len(document.body) for document in view.documents.values())),
        problems=prefix + view.door.catalog.paths.problems,
    )
