"""Requests that are none of awp_publish's, in process: what passing them through costs."""

from awp_publish import AgentPublisher
from benchmarks.applications import BOOK, bare, empty_site, published, shop, stack
from benchmarks.measure import Case, Series, ask, interleave, on_each_loop, same
from benchmarks.table import Row, added, at_most, compare


def ordinary(seconds: float) -> list[Row]:
    """An ordinary GET, beside the same without awp_publish.

    The added microseconds are measured on applications that do next to nothing, where they can be seen; the ratio on a
    FastAPI route. `Link` headers have to be asked for; what they add only informs.
    """
    on_bare = on_each_loop(lambda: _measure(_bare_cases(), seconds / 12))
    on_stack = on_each_loop(lambda: _measure(_stack_cases(), seconds / 12))
    on_route = on_each_loop(lambda: _measure(_route_cases(), seconds / 3))
    inside, outermost = "ordinary request, add_middleware", "ordinary request, outermost"
    most, ratio, route = at_most(0.5, "us"), at_most(1.02), "FastAPI GET without it"
    return [
        added(outermost, on_bare, "outermost", "nowhere", "bare ASGI application", most),
        added(inside, on_stack, "inside", "nowhere", "Starlette's middleware stack without it", most),
        compare(outermost, on_route, "outermost", "nowhere", route, ratio),
        compare(inside, on_route, "inside", "nowhere", route, ratio),
        compare("ordinary request, with link_headers", on_route, "linking", "nowhere", route, None),
    ]


async def _measure(cases: list[Case], seconds: float) -> dict[str, Series]:
    """All cases must give the first one's answer."""
    wanted = await ask(cases[0])
    assert wanted.status == 200
    return await interleave([await same(case, wanted) for case in cases], seconds)


def _bare_cases() -> list[Case]:
    return [Case("nowhere", bare(), BOOK), Case("outermost", published(bare(), empty_site(), "outermost"), BOOK)]


def _stack_cases() -> list[Case]:
    return [Case("nowhere", stack("nowhere"), BOOK), Case("inside", stack("inside"), BOOK)]


def _route_cases() -> list[Case]:
    return [
        Case("nowhere", shop("nowhere"), BOOK),
        Case("inside", shop("inside"), BOOK),
        Case("outermost", shop("outermost"), BOOK),
        Case("linking", AgentPublisher(shop("nowhere"), empty_site(), link_headers=True), BOOK),
    ]
