"""Which elements the style rules of a page hide, by the cascade (CSS 2.2, 6.4).

Only what a page itself says in `style` and `<style>` is read. A condition that depends on the reader (a width, a state
such as `:hover`) is taken as unknown, and its rules are left out. Time is bounded (see `Matcher`): beyond it no further
rules are applied.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress

from awp_publish.pages.declarations import Declarations, hides, read_declarations
from awp_publish.pages.matching import ExhaustedError, Matcher, PageNodes
from awp_publish.pages.sheets import Sheet, read_sheet


def hidden_by_rules(page: PageNodes, sheets: Iterable[str], start: int, end: int) -> set[int]:
    """Return the elements of a scope that its sheets hide, together with their `style`."""
    read = [sheet for sheet in map(read_sheet, sheets) if sheet.blocks]
    return hidden_in(Matcher(page, start, end), page, read) if any(sheet.hiding for sheet in read) else set()


def hidden_in(matcher: Matcher, page: PageNodes, sheets: Sequence[Sheet]) -> set[int]:
    """Return the elements that the sheets hide. The others need not be looked at: no rule hides them."""
    declared: dict[int, list[Declarations]] = {}
    with suppress(ExhaustedError):
        for sheet in sheets:
            for rule in sheet.hiding_rules(matcher.names):
                declared.update((at, []) for at in matcher.matching(rule.selector))
    among = sorted(declared)
    names = {page.tags[at] for at in among}
    for given in (page.attributes[at] for at in among):
        names.update([*given.get("class", "").split(), given.get("id", "")])
    numbered = enumerate(sheets) if among else ()
    rules = [(rule.selector.weight, number, rule) for number, sheet in numbered for rule in sheet.rules(names)]
    rules.sort(key=lambda each: each[:2])  # those of one sheet are in order
    with suppress(ExhaustedError):
        for _, _, rule in rules:
            for at in matcher.matching(rule.selector, among):
                if at in declared:
                    declared[at].append(rule.declarations)
    return {at for at, own in declared.items() if hides(_cascade([*own, _style_of(page, at)]))}


def _style_of(page: PageNodes, at: int) -> Declarations:
    style = page.attributes[at].get("style")
    return read_declarations(style) if style else {}


def _cascade(declared: Iterable[Declarations]) -> Declarations:
    """Return the declarations that take effect of several that apply to one element, the strongest last."""
    merged: dict[str, tuple[str, bool]] = {}
    for declarations in declared:
        for name, (value, is_important) in declarations.items():
            if name not in merged or is_important or not merged[name][1]:
                merged[name] = value, is_important
    return merged
