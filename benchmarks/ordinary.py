"""Requests that are none of awp_publish's, in process: what passing them through costs."""

import time
from dataclasses import replace

from awp_publish import AgentPublisher
from benchmarks.applications import HTML_ANSWER, bare, beside
from benchmarks.measure import Case, Series, ask, interleave, on_each_loop, same
from benchmarks.negotiating import BROWSER
from benchmarks.shop import BOOK, empty_site, shop
from benchmarks.table import Row, at_most, compare


def ordinary(seconds: float) -> list[Row]:
    """An ordinary GET, beside the same without awp_publish.

    What passing costs is measured around an application that does next to nothing, where it can be seen, beside a
    middleware that does nothing: pages in other formats have the beginning of each answer looked at. The ratio is
    measured on a FastAPI route, where with pages it only informs. So do `Link` headers, which have to be asked for.
    """
    on_bare = on_each_loop(lambda: _measure(_bare_cases(), seconds / 6))
    on_route = on_each_loop(lambda: _measure(_route_cases(), seconds / 3))
    inside, outermost = "ordinary request, add_middleware", "ordinary request, outermost"
    ratio, route, empty = at_most(1.02), "FastAPI GET without it", "an empty ASGI middleware"
    return [
        compare("pass-through, HTML only", on_bare, "HTML only", "beside", empty, at_most(2.5)),
        compare("pass-through, with pages", on_bare, "pages", "beside", empty, at_most(7)),
        compare("pass-through, with pages, for a browser", on_bare, "browser", "beside", empty, at_most(7)),
        compare(outermost, on_route, "outermost", "nowhere", route, ratio),
        compare(inside, on_route, "inside", "nowhere", route, ratio),
        compare("ordinary request, with pages", on_route, "pages", "nowhere", route, None),
        compare("ordinary request, with link_headers", on_route, "linking", "nowhere", route, None),
    ]


async def _measure(cases: list[Case], seconds: float) -> dict[str, Series]:
    """All cases must give the first one's answer."""
    wanted = await ask(cases[0])
    assert wanted.status == 200
    timed = [replace(await same(case, wanted), clock=time.thread_time) for case in cases]
    return await interleave(timed, seconds)


def _bare_cases() -> list[Case]:
    page, accepting = bare(headers=HTML_ANSWER), ((b"accept", BROWSER),)
    without, pages = (
        AgentPublisher(page, empty_site(plugins=["no:pages"])),
        AgentPublisher(page, empty_site(plugins=["pages"])),
    )
    return [
        Case("beside", beside(page), BOOK),
        Case("HTML only", without, BOOK),
        Case("pages", pages, BOOK),
        Case("browser", pages, BOOK, headers=accepting),
    ]


def _route_cases() -> list[Case]:
    return [
        Case("nowhere", shop("nowhere"), BOOK),
        Case("inside", shop("inside", plugins=["no:pages"]), BOOK),
        Case("outermost", shop("outermost", plugins=["no:pages"]), BOOK),
        Case("pages", shop("outermost", plugins=["pages"]), BOOK),
        Case("linking", AgentPublisher(shop("nowhere"), empty_site(), link_headers=True), BOOK),
    ]
