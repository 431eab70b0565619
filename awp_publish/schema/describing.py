"""The violations of an invalid instance, found by a walk alongside its schema."""

import json
from collections.abc import Callable, Mapping, Set
from itertools import islice
from time import thread_time
from typing import Final, TypeAlias, cast
from urllib.parse import quote

import jsonschema_rs

from awp_publish.model import JsonObject
from awp_publish.problems import MAX_VIOLATIONS, Violation, did_you_mean
from awp_publish.schema.engine import compile_engine, refuse_to_fetch
from awp_publish.schema.parts import is_secret, list_of, named_subschemas, parts_of, table_of, target_of
from awp_publish.schema.pointers import part_at, pointer_to
from awp_publish.schema.wording import (
    FORMAT_NOUNS,
    MAX_LISTED,
    OTHERWISE,
    UNEXPLAINED,
    WORDS,
    echo,
    is_among,
    listing,
    one_of,
    type_noun,
    values_of,
)

DESCRIPTION_TIME: Final = 0.1
"""Seconds of CPU time that describing violations may take."""

MAX_DESCRIBED_DEPTH: Final = 50
"""Levels of an instance down to which violations are described."""

_Path: TypeAlias = tuple[str | int, ...]


class _Walk:
    """The violations found by one walk, and its deadline."""

    def __init__(self, elsewhere: Mapping[str, str]) -> None:
        self.found: list[Violation] = []
        self.count = 0
        self.seen: set[tuple[str, _Path]] = set()
        self.elsewhere = elsewhere
        self._deadline = thread_time() + DESCRIPTION_TIME

    def note(self, path: _Path, detail: str) -> None:
        self.count += 1
        if len(self.found) < MAX_VIOLATIONS:
            self.found.append(Violation(pointer_to(path), detail))

    def is_over(self) -> bool:
        """Return True if enough violations were found or the deadline has passed."""
        return self.count >= MAX_VIOLATIONS or thread_time() > self._deadline


class Walker:
    """Walks an instance alongside its schema, into the parts that do not conform."""

    def __init__(self, schema: dict[str, object], asserts_formats: bool) -> None:
        self._schema = schema
        self._asserts_formats = asserts_formats
        self._named = named_subschemas(schema)
        self._registry = jsonschema_rs.Registry([(_BASE, schema)], retriever=refuse_to_fetch)
        self._parts: dict[str, Callable[[object], bool]] = {}
        self._keywords: dict[tuple[str, int], Callable[[object], bool]] = {}
        self._secrets: dict[tuple[str, bool], bool] = {}

    def describe(self, instance: object, elsewhere: Mapping[str, str]) -> tuple[tuple[Violation, ...], int]:
        """Return the violations of an invalid instance, and the number of further ones that were found."""
        walk = _Walk(elsewhere)
        self._describe(walk, "", instance, (), False)
        return tuple(walk.found), walk.count - len(walk.found)

    def _conforms(self, at: str, value: object) -> bool:
        """Return True if a value conforms to the part of the schema at a pointer."""
        if at not in self._parts:
            try:
                reference: dict[str, object] = {"$ref": f"{_BASE}#{quote(at)}"}
                self._parts[at] = compile_engine(reference, self._registry, self._asserts_formats).is_valid
            except (jsonschema_rs.ReferencingError, ValueError):  # a part within another $id has another address
                self._parts[at] = lambda _: True
        return self._parts[at](value)

    def _holds(self, keyword: str, limit: object, value: object) -> bool:
        """Return True if a value conforms to a keyword that has no subschemas. `limit` is the keyword's value."""
        key = (keyword, id(limit))
        if key not in self._keywords:
            self._keywords[key] = compile_engine({keyword: limit}, asserts_formats=self._asserts_formats).is_valid
        return self._keywords[key](value)

    def _look(self, walk: _Walk, at: str, value: object, path: _Path, is_secret: bool) -> None:
        if not walk.is_over() and not self._conforms(at, value):
            self._describe(walk, at, value, path, is_secret)

    def _describe(self, walk: _Walk, at: str, value: object, path: _Path, is_secret: bool) -> None:
        before, schema = walk.count, part_at(self._schema, at)
        if (at, path) in walk.seen:
            return
        walk.seen.add((at, path))
        is_secret = is_secret or self._is_secret(at)
        echoes = not (is_secret or self._is_secret(at, within=True))
        if isinstance(schema, Mapping) and len(path) < MAX_DESCRIBED_DEPTH:
            for keyword, words in WORDS.items():
                if keyword in schema and not self._holds(keyword, schema[keyword], value):
                    walk.note(path, words(schema[keyword], value) + (echo(keyword, value) if echoes else ""))
            if isinstance(value, dict):
                self._describe_members(walk, at, schema, value, path, is_secret)
            elif isinstance(value, list):
                first = len(list_of(schema, "prefixItems"))
                for index, item in enumerate(value if "items" in schema else value[:first]):
                    if walk.is_over():
                        break
                    place = f"{at}/prefixItems/{index}" if index < first else f"{at}/items"
                    self._look(walk, place, item, (*path, index), is_secret)
            # Further parts of the schema that apply to the same value.
            beside = [target] if (target := target_of(schema)) is not None else []
            beside += [f"{at}/allOf/{index}" for index, _ in enumerate(list_of(schema, "allOf"))]
            if "if" in schema:
                place = f"{at}/then" if self._conforms(f"{at}/if", value) else f"{at}/else"
                beside += [place] if part_at(self._schema, place) is not None else []
            for name in table_of(schema, "dependentSchemas"):
                if isinstance(value, dict) and name in value:
                    beside.append(f"{at}/dependentSchemas{pointer_to([name])}")
            for place in beside:
                self._look(walk, place, value, path, is_secret)
            for keyword in ("anyOf", "oneOf"):
                if keyword in schema and not walk.is_over():
                    self._describe_union(walk, f"{at}/{keyword}", schema, value, path, is_secret, echoes)
        if walk.count == before:
            keywords = schema if isinstance(schema, Mapping) else ("false",)
            walk.note(path, next((words for name, words in UNEXPLAINED.items() if name in keywords), OTHERWISE))

    def _describe_members(
        self, walk: _Walk, at: str, schema: JsonObject, value: dict[str, object], path: _Path, is_secret: bool
    ) -> None:
        needed = list(list_of(schema, "required"))
        depending = table_of(schema, "dependentRequired")
        for name in depending:
            needed += list_of(depending, name) if name in value else ()
        for name in needed:
            if name not in value:
                walk.note((*path, name), "is required")
        named, patterns = table_of(schema, "properties"), table_of(schema, "patternProperties")
        rest = schema.get("additionalProperties")
        known: Set[str] = named.keys()
        if rest is None and (rest := schema.get("unevaluatedProperties")) is False:
            parts = parts_of(self._schema, [schema], self._named)
            known = {name for part in parts for name in table_of(part, "properties")}
        has_listed = False
        for name, member in value.items():
            places = [f"{at}/properties{pointer_to([name])}"] if name in named else []
            if patterns:
                matched = [pattern for pattern in patterns if self._holds("pattern", pattern, name)]
                places += [f"{at}/patternProperties{pointer_to([pattern])}" for pattern in matched]
            if rest is False and name not in known and not places:
                detail = "is not a known member"
                if walk.is_over():
                    pass  # all unknown members are counted
                elif not path and name in walk.elsewhere:
                    detail = f"is not an input: {walk.elsewhere[name]}"
                elif suggestion := did_you_mean(name, known):
                    detail += f". {suggestion}"
                elif not has_listed and known:
                    has_listed = True
                    detail += f". Known members: {listing(list(known), name)}"
                walk.note((*path, name), detail)
                continue
            if not places and "additionalProperties" in schema:
                places = [f"{at}/additionalProperties"]
            if walk.is_over():
                continue
            if "propertyNames" in schema and not self._conforms(f"{at}/propertyNames", name):
                names = self._resolved(f"{at}/propertyNames")
                allowed = f": it must be {self._noun(names, name)}" if values_of(names) else ""
                walk.note((*path, name), f"is not an allowed name{allowed}")
            for place in places:
                self._look(walk, place, member, (*path, name), is_secret)

    # A union is described by the one alternative that was most likely meant, so that the walk never branches.

    def _describe_union(
        self, walk: _Walk, at: str, schema: JsonObject, value: object, path: _Path, is_secret: bool, echoes: bool
    ) -> None:
        """Describe a value that fits none of the alternatives at a pointer, or more than one of oneOf."""
        places = [f"{at}/{index}" for index, _ in enumerate(cast(list[object], part_at(self._schema, at)))]
        fitting = sum(self._conforms(place, value) for place in places)
        if fitting == 1 or (fitting and at.endswith("anyOf")):
            return
        if fitting:
            walk.note(path, "matches several of the alternatives and must match exactly one")
            return
        kinds = {place: self._resolved(place) for place in places}
        kinds = {place: kind for place, kind in kinds.items() if kind.get("type") != "null"} or kinds

        # A tag selects the alternative, or is itself what is wrong.
        tag, tags = self._tags(schema, kinds)
        is_needed = "discriminator" in schema or all(tag in list_of(kinds[place], "required") for place in tags)
        if tag and isinstance(value, dict) and (tag in value or is_needed):
            if tag not in value or not any(is_among(value[tag], allowed) for allowed in tags.values()):
                allowed = [value for listed in tags.values() for value in listed]
                choices = one_of(allowed, value.get(tag))
                expected = f"must be {choices}{echo('enum', value[tag]) if echoes else ''}" if tag in value else ""
                walk.note((*path, tag), expected or f"is required: {choices}")
                return
            kinds = {
                place: kind for place, kind in kinds.items() if place not in tags or is_among(value[tag], tags[place])
            }

        typed = [
            place for place, kind in kinds.items() if "type" not in kind or self._holds("type", kind["type"], value)
        ]
        chosen = typed[0] if len(typed) == 1 else None
        if len(typed) > 1 and isinstance(value, (dict, list)):
            scores = {place: self._closeness(place, value) for place in typed}
            best = max(typed, key=scores.__getitem__)
            chosen = best if scores[best] > (0, 1) or isinstance(value, list) else None
        if chosen is not None:
            self._look(walk, chosen, value, path, is_secret)
            return
        nouns, values = list[str](), list[object]()
        for kind in kinds.values():
            if listed := values_of(kind):
                values += listed
            else:
                nouns.append(self._noun(kind, value))
        nouns += [one_of(values, value)] if values else []
        expected = " or ".join(dict.fromkeys(nouns))
        if typed and isinstance(value, (dict, list)):
            echoes = False  # that it is an object would not help
        walk.note(path, f"must be {expected}{echo('type', value) if echoes else ''}")

    def _tags(self, schema: JsonObject, kinds: Mapping[str, JsonObject]) -> tuple[str, dict[str, list[object]]]:
        """Return the member that distinguishes the objects of a union, with its values in each; "" if there is none."""
        discriminator = table_of(schema, "discriminator")
        named, mapping = discriminator.get("propertyName"), table_of(discriminator, "mapping")
        objects = {place: kind for place, kind in kinds.items() if "properties" in kind}
        tags_by_name: dict[str, dict[str, list[object]]] = {}
        for place, kind in objects.items():
            for name in table_of(kind, "properties"):
                if values := values_of(self._resolved_part(table_of(kind, "properties")[name])):
                    tags_by_name.setdefault(name, {})[place] = values
            reference = (part_at(self._schema, place) or {}).get("$ref")  # type: ignore[attr-defined]
            mapped: list[object] = [value for value, target in mapping.items() if target == reference]
            if isinstance(named, str) and mapped:
                tags_by_name.setdefault(named, {}).setdefault(place, mapped)
        if isinstance(named, str):
            return (named, tags_by_name[named]) if named in tags_by_name else ("", {})
        # Without a discriminator: a member that has values in each of the objects, all of them different.
        for name, tags in tags_by_name.items():
            listed = [json.dumps(value) for values in tags.values() for value in values]
            if len(tags) == len(objects) and len(objects) > 1 and len(set(listed)) == len(listed):
                return name, tags
        return "", {}

    def _closeness(self, at: str, value: dict[str, object] | list[object]) -> tuple[int, int, int, int]:
        """Return how well an object or list fits an alternative; the best fit compares largest."""
        kind = self._resolved(at)
        if isinstance(value, list):
            items = f"{self._address(at)}/items"
            fitting = sum(self._conforms(items, item) for item in value[:MAX_LISTED]) if "items" in kind else 0
            return fitting, 0, 0, 0
        named = table_of(kind, "properties")
        present = [name for name in islice(named, MAX_MEMBERS) if name in value]
        properties = f"{self._address(at)}/properties"
        fitting = sum(self._conforms(properties + pointer_to([name]), value[name]) for name in present)
        missing = sum(name not in value for name in list_of(kind, "required"))
        return fitting, len(present), -missing, len(present) - len(value)

    def _address(self, at: str) -> str:
        """Follow the references at a pointer and return the final pointer."""
        for _ in range(MAX_DESCRIBED_DEPTH):
            schema = part_at(self._schema, at)
            target = target_of(schema) if isinstance(schema, Mapping) else None
            if target is None:
                break
            at = target
        return at

    def _resolved(self, at: str) -> JsonObject:
        part = part_at(self._schema, self._address(at))
        return part if isinstance(part, Mapping) else {}

    def _resolved_part(self, part: object) -> JsonObject:
        target = target_of(part) if isinstance(part, Mapping) else None
        return self._resolved(target) if target is not None else part if isinstance(part, Mapping) else {}

    def _noun(self, kind: JsonObject, value: object, depth: int = 0) -> str:
        """Return a noun phrase for what a schema allows."""
        if values := values_of(kind):
            return one_of(values, value)
        if (name := kind.get("format")) and self._asserts_formats and str(name) in FORMAT_NOUNS:
            return FORMAT_NOUNS[str(name)]
        if kind.get("contentEncoding") == "base64":
            return "base64"
        if "type" in kind:
            needed, pattern = list_of(kind, "required"), kind.get("pattern")
            details = f" with {listing(needed)}" if kind["type"] == "object" and needed else ""
            details = f" that matches the pattern {pattern}" if kind["type"] == "string" and pattern else details
            return type_noun(kind["type"]) + details
        inner = [*list_of(kind, "anyOf"), *list_of(kind, "oneOf")]
        if inner and depth < 3:
            parts = [self._resolved_part(branch) for branch in inner]
            nouns = [self._noun(part, value, depth + 1) for part in parts if part.get("type") != "null"]
            return " or ".join(dict.fromkeys(nouns)) or "null"
        return "an object" if "properties" in kind else "what the schema allows"

    def _is_secret(self, at: str, within: bool = False) -> bool:
        """Return True if the value at a pointer is a password, or must not be disclosed (`writeOnly`).

        With `within`, also if it may contain such a value: a password sent in place of a list of passwords is still
        secret.
        """
        if (at, within) not in self._secrets:
            parts = list(parts_of(self._schema, [part_at(self._schema, at)], self._named))
            part_ids = set(map(id, parts))
            for part in parts if within else ():  # grows during iteration
                inner = [part.get("items"), part.get("additionalProperties"), *list_of(part, "prefixItems")]
                inner += [*table_of(part, "properties").values(), *table_of(part, "patternProperties").values()]
                further = [part for part in parts_of(self._schema, inner, self._named) if id(part) not in part_ids]
                part_ids |= set(map(id, further))
                parts += further
            self._secrets[at, within] = any(map(is_secret, parts))
        return self._secrets[at, within]


_BASE: Final = "https://schema.invalid/"
"""The base address of a schema in the engine, to which pointers are appended. No such host exists (RFC 6761)."""

MAX_MEMBERS: Final = 50
"""Members of an alternative that are compared with those of an object."""
