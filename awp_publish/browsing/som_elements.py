"""The regions and elements of a SOM document."""

from collections.abc import Iterator, Mapping

from awp_publish.schema import JsonObject


def regions_of(document: JsonObject) -> list[JsonObject]:
    """Return the regions of a SOM document."""
    return _objects(document.get("regions"))


def elements_of(document: JsonObject) -> Iterator[JsonObject]:
    """Iterate over the elements of a SOM document in document order, those of shadow roots after their hosts."""
    for region in regions_of(document):
        waiting = list(reversed(_objects(region.get("elements"))))
        while waiting:
            element = waiting.pop()
            yield element
            shadow = element.get("shadow")
            inner = _objects(element.get("children"))
            inner += _objects(shadow.get("elements")) if isinstance(shadow, Mapping) else []
            waiting.extend(reversed(inner))


def _objects(value: object) -> list[JsonObject]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
