"""Names that tell buttons and links apart that would otherwise have the same: "Delete Emma"."""

from collections import Counter
from collections.abc import Iterator, Mapping

from awp_publish.pages.forms import describe_hidden
from awp_publish.pages.input_types import BUTTONS, input_type
from awp_publish.pages.items import ItemNames
from awp_publish.pages.names import MAX_NODES, AccessibleNames
from awp_publish.pages.survey import Survey
from awp_publish.pages.visibility import Visibility, text_of


def has_alike(visibility: Visibility) -> bool:
    """Return False if no two buttons, and no two links in one table, have the same text: a quick test."""
    tree = visibility.tree
    seen, end = set[tuple[int, str]](), 0
    for at in (*tree.find("button"), *tree.find("input")):
        if tree.tags[at] == "button" or input_type(tree.attributes[at]) in BUTTONS:
            key = -1, text_of(visibility, at, max_nodes=MAX_NODES) or tree.attributes[at].get("value", "")
            if key in seen:
                return True
            seen.add(key)
    for table in tree.find("table"):
        for at in range(max(table, end), tree.ends[table]):
            if tree.tags[at] == "a":
                key = table, text_of(visibility, at, max_nodes=MAX_NODES)
                if key in seen and key[1]:
                    return True
                seen.add(key)
        end = max(end, tree.ends[table])
    return False


def distinct_names(
    survey: Survey, names: AccessibleNames, items: ItemNames, visibility: Visibility
) -> Mapping[int, str]:
    """Return such names by node: of buttons by their item, of links by their row."""
    groups: dict[tuple[str, str], list[int]] = {}
    named: dict[int, str] = {}
    for region in (*survey.regions, *survey.shadows.values()):
        for candidate in region.candidates:
            role, node = survey.roles[candidate], survey.nodes[candidate]
            if role == "button" or (role == "link" and items.is_in_row(node)):
                text = survey.text(candidate)
                name = named[candidate] = names.name(node, text)
                groups.setdefault((role, name.lower()), []).append(candidate)
    distinct: dict[int, str] = {}
    for (role, _), alike in groups.items():
        if len(alike) < 2:
            continue
        told = (
            _of_links(alike, survey, items, visibility)
            if role == "link"
            else _of_buttons(alike, survey, items, visibility)
        )
        for candidate, item in told:
            if item and item.lower() not in named[candidate].lower():
                distinct[survey.nodes[candidate]] = f"{named[candidate]} {item}"
    return distinct


def _of_links(alike: list[int], survey: Survey, items: ItemNames, visibility: Visibility) -> Iterator[tuple[int, str]]:
    attributes = visibility.tree.attributes
    addresses = {attributes[survey.nodes[one]].get("href", "") for one in alike}
    if len(addresses) > 1:
        yield from ((one, items.of_row(survey.nodes[one])) for one in alike)


def _of_buttons(
    alike: list[int], survey: Survey, items: ItemNames, visibility: Visibility
) -> Iterator[tuple[int, str]]:
    alike = sorted(alike, key=survey.starts.__getitem__)
    by_node = items.of_each([(survey.nodes[one], survey.starts[one], survey.ends[one]) for one in alike])
    times = Counter(by_node.values())
    for one in alike:
        item, form = by_node[survey.nodes[one]], survey.forms.get(survey.nodes[one])
        if form is not None and (not item or times[item] > 1):  # they differ only in their hidden fields
            item = f"{item} {describe_hidden(form, visibility)[1]}".strip()
        yield one, item
