"""The order in which Tab goes through a page in process: visible, enabled controls and links, as they stand."""

from bisect import bisect_left
from collections.abc import Iterator

from awp_publish.browsing.markup import Place
from awp_publish.maps.page_view import PageView


def next_in_tab_order(view: PageView, focus: Place | None, step: int) -> Place | None:
    """Return where Tab (a step of 1) or Shift+Tab (-1) leads from an element, None beyond the first and the last."""
    index = view.index
    stops = list(_stops(view))
    if not stops:
        return None
    current = None if focus is None else index.number_at.get(focus)
    if current is None:
        return index.places[stops[0 if step > 0 else -1]]
    at = bisect_left(stops, current)
    if step > 0 and at < len(stops) and stops[at] == current:
        at += 1
    elif step < 0:
        at -= 1
    return index.places[stops[at]] if 0 <= at < len(stops) else None


def _stops(view: PageView) -> Iterator[int]:
    index = view.index
    for number, node in enumerate(map(index.tree.node, index.in_tree)):
        control = index.compiled.markup.controls.get(index.places[number])
        is_control = control is not None and node.tag not in ("fieldset", "object", "output") and not control.disabled
        is_link = node.tag in ("a", "area") and "href" in node.attributes
        if (is_control or is_link or "tabindex" in node.attributes) and view.shows(number):
            yield number
