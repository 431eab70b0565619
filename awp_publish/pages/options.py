"""The options of a select (HTML, 4.10.7)."""

from dataclasses import dataclass

from awp_publish.pages.tree import Tree


@dataclass(frozen=True, slots=True)
class PageOption:
    """An option, the label of its group, and whether it is chosen and can be chosen."""

    node: int
    group: str
    is_selected: bool
    is_disabled: bool


def read_options(tree: Tree, select: int) -> list[PageOption]:
    """Return the options of a select. If none is said to be chosen, browsers choose the first that can be."""
    tags, attributes = tree.tags, tree.attributes
    options: list[PageOption] = []
    group, group_end, group_disabled = "", 0, False
    at, end = select + 1, tree.ends[select]
    while at < end:
        given = attributes[at]
        if tags[at] == "optgroup":
            group, group_end, group_disabled = given.get("label", ""), tree.ends[at], "disabled" in given
        elif tags[at] == "option":
            is_grouped = at < group_end
            is_disabled = "disabled" in given or (is_grouped and group_disabled)
            options.append(PageOption(at, group if is_grouped else "", "selected" in given, is_disabled))
            at = tree.ends[at]
            continue
        at += 1
    if "multiple" not in attributes[select] and not any(option.is_selected for option in options):
        for place, option in enumerate(options):
            if not option.is_disabled:
                options[place] = PageOption(option.node, option.group, True, False)
                break
    return options
