"""Names that tell buttons and links apart that would otherwise have the same: "Delete Emma"."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from awp_publish.pages.forms import describe_hidden
from awp_publish.pages.input_types import BUTTONS, input_type
from awp_publish.pages.items import ItemNames, item_of
from awp_publish.pages.name_content import MAX_NODES
from awp_publish.pages.names import AccessibleNames
from awp_publish.pages.survey import Survey
from awp_publish.pages.tree import Tree
from awp_publish.pages.visibility import Visibility, text_of

_MAX_ACTION: Final = 20
"""Characters of the text of a link in an item that says what it does, and not what it leads to."""


def has_alike(visibility: Visibility, left_out: Sequence[int] = ()) -> bool:
    """Return False if no two buttons, and no two links in one table, have the same text: a quick test.

    Those that are all in one of the elements `left_out` do not count.
    """
    tree, end = visibility.tree, 0
    seen = dict[tuple[int, str], bool]()  # whether one of them is not left out

    def is_alike(key: tuple[int, str], at: int) -> bool:
        counts = not any(block <= at < tree.ends[block] for block in left_out)
        is_known, seen[key] = key in seen, seen.get(key, False) or counts
        return is_known and seen[key]

    for at in (*tree.find("button"), *tree.find("input")):
        if tree.tags[at] == "button" or input_type(tree.attributes[at]) in BUTTONS:
            text = text_of(visibility, at, max_nodes=MAX_NODES) or tree.attributes[at].get("value", "")
            if is_alike((-1, text), at):
                return True
    for table in tree.find("table"):
        for at in range(max(table, end), tree.ends[table]):
            if tree.tags[at] == "a":
                text = text_of(visibility, at, max_nodes=MAX_NODES)
                if is_alike((table, text), at) and text:
                    return True
        end = max(end, tree.ends[table])
    links = ((at, " ".join(own.split())) for at in tree.find("a") if (own := tree.only(at)))
    return any(
        not any(block <= link < tree.ends[block] for block in left_out for link in items)
        for items in _in_items(tree, links)
    )


def _in_items(tree: Tree, links: Iterable[tuple[int, str]]) -> Iterator[dict[int, int]]:
    """Yield those of some links, with their texts, that say the same in several items of one list, with these items."""
    by_text = defaultdict[str, list[int]](list)
    for link, text in links:
        if len(text) <= _MAX_ACTION:
            by_text[text].append(link)
    for text, alike in by_text.items():
        if len(alike) < 2 or not any(map(str.isalpha, text)):
            continue
        by_list: dict[int, dict[int, int]] = {}
        for link in alike:
            if (item := item_of(tree, link)) is not None:
                by_list.setdefault(tree.parents[item], {})[link] = item
        for items in by_list.values():
            if not 1 < len(items) == len(set(items.values())):
                continue
            addresses = {tree.attributes[link].get("href", "") for link in items}
            if len(addresses) > 1 and not any(address.startswith("#") for address in addresses):
                yield items


def distinct_names(
    survey: Survey, names: AccessibleNames, items: ItemNames, visibility: Visibility
) -> Mapping[int, str]:
    """Return such names by node: of buttons by their item, of links by their row or item."""
    tree = visibility.tree
    groups: dict[tuple[str, str], list[int]] = {}
    named: dict[int, str] = {}
    links = dict[int, str]()
    for region in (*survey.regions, *survey.shadows.values()):
        for candidate in region.candidates:
            role, node = survey.roles[candidate], survey.nodes[candidate]
            if role == "button" or (role == "link" and items.is_in_row(node)):
                text = survey.text(candidate)
                name = named[candidate] = names.name(node, text)
                groups.setdefault((role, name.lower()), []).append(candidate)
            elif role == "link" and survey.ends[candidate] - survey.starts[candidate] == 1:
                links[node] = survey.text(candidate)
    distinct: dict[int, str] = {}
    for alike_links in _in_items(tree, links.items()):
        for link, of in alike_links.items():
            if item := items.of_item(of, link):
                distinct[link] = f"{links[link]} {item}"
    for (role, _), alike in groups.items():
        if len(alike) < 2:
            continue
        described = (
            _of_links(alike, survey, items, visibility)
            if role == "link"
            else _of_buttons(alike, survey, items, visibility)
        )
        for candidate, item in described:
            if item and item.lower() not in named[candidate].lower():
                distinct[survey.nodes[candidate]] = f"{named[candidate]} {item}"
    return distinct


def _of_links(alike: list[int], survey: Survey, items: ItemNames, visibility: Visibility) -> Iterator[tuple[int, str]]:
    attributes = visibility.tree.attributes
    addresses = {attributes[survey.nodes[element]].get("href", "") for element in alike}
    if len(addresses) > 1:
        yield from ((element, items.of_row(survey.nodes[element])) for element in alike)


def _of_buttons(
    alike: list[int], survey: Survey, items: ItemNames, visibility: Visibility
) -> Iterator[tuple[int, str]]:
    alike = sorted(alike, key=survey.starts.__getitem__)
    by_node = items.of_each(
        [(survey.nodes[element], survey.starts[element], survey.ends[element]) for element in alike]
    )
    times = Counter(by_node.values())
    for element in alike:
        item, form = by_node[survey.nodes[element]], survey.forms.get(survey.nodes[element])
        if form is not None and (not item or times[item] > 1):  # they differ only in their hidden fields
            item = f"{item} {describe_hidden(form, visibility)[1]}".strip()
        yield element, item
