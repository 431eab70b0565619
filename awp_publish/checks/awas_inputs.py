"""Parameters (AWAS 1.0) and inputs (1.1): do their rules fit together, and do their examples keep them?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from awp_publish.checks.awas_shape import SCHEMA_1_1, SPEC_1_0
from awp_publish.checks.finding import Check, Flaw, shown
from awp_publish.checks.patterns import is_pattern, matches
from awp_publish.checks.pointer import arrays, child, objects, select, strings
from awp_publish.checks.shape import TYPES, is_type

Document = Mapping[str, object]
PARAMETERS = f"{SPEC_1_0}, Parameter Object Structure"
PLACES = ("/actions/[]/parameters/[]", "/actions/[]/inputs/[]")


def each_input(document: Document) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield every parameter and every input."""
    for place in PLACES:
        yield from objects(document, place)


def bad_enumerations(document: Document) -> Iterator[Flaw]:
    """Find enumerations that are no array or have nothing in them."""
    for place in (*(f"{place}/enum" for place in PLACES), *(f"{place}/validation/enum" for place in PLACES)):
        for pointer, value in select(document, place):
            if not isinstance(value, list):
                yield Flaw(pointer, f"The enumeration is {shown(value)} and not an array.")
            elif not value:
                yield Flaw(pointer, "The enumeration allows nothing.")


def bad_patterns(document: Document) -> Iterator[Flaw]:
    """Find validation patterns that are no regular expressions."""
    for pointer, pattern in strings(document, *(f"{place}/validation/pattern" for place in PLACES)):
        if not is_pattern(pattern):
            yield Flaw(pointer, f"{shown(pattern)} is not a regular expression.")


def empty_ranges(document: Document) -> Iterator[Flaw]:
    """Find lower limits above the upper limit, and negative lengths."""
    for pointer, rules in (found for place in PLACES for found in objects(document, f"{place}/validation")):
        for low, high in (("min", "max"), ("minLength", "maxLength")):
            lowest, highest = _number(rules.get(low)), _number(rules.get(high))
            if lowest is not None and highest is not None and lowest > highest:
                yield Flaw(child(pointer, low), f"{low} {shown(rules[low])} is above {high} {shown(rules[high])}.")
        for name in ("minLength", "maxLength"):
            length = _number(rules.get(name))
            if length is not None and length < 0:
                yield Flaw(child(pointer, name), f"{name} is {shown(rules[name])}; no text is that short.")


def broken_defaults(document: Document) -> Iterator[Flaw]:
    """Find default values that the rules beside them refuse. A default of null means that there is none."""
    for pointer, parameter in each_input(document):
        if parameter.get("default") is not None:
            for fault in _faults(parameter["default"], parameter):
                yield Flaw(child(pointer, "default"), f"The default {shown(parameter['default'])} {fault}.")


def broken_examples(document: Document) -> Iterator[Flaw]:
    """Find example values that the rules beside them refuse."""
    for pointer, parameter in each_input(document):
        examples = [("example", parameter["example"])] if parameter.get("example") is not None else []
        more = parameter.get("examples")
        if isinstance(more, list):
            examples += [(f"examples/{index}", value) for index, value in enumerate(more)]
        for place, value in examples:
            for fault in _faults(value, parameter):
                yield Flaw(f"{pointer}/{place}", f"The example {shown(value)} {fault}.")


def repeated_names(document: Document) -> Iterator[Flaw]:
    """Find parameters of one action that share a name."""
    for place in ("/actions/[]/parameters", "/actions/[]/inputs"):
        for pointer, parameters in arrays(document, place):
            yield from _repeated(parameters, pointer)


def _repeated(parameters: list[object], pointer: str) -> Iterator[Flaw]:
    known: set[str] = set()
    for place, name in strings(parameters, "/[]/name"):
        if name in known:
            yield Flaw(pointer + place, f"The name {shown(name)} is given to two parameters of one action.")
        known.add(name)


def disagreeing(document: Document) -> Iterator[Flaw]:
    """Find actions whose parameters (1.0) and inputs (1.1) have different names."""
    for pointer, action in objects(document, "/actions/[]"):
        if isinstance(action.get("parameters"), list) and isinstance(action.get("inputs"), list):
            old, new = _names(action, "/parameters/[]/name"), _names(action, "/inputs/[]/name")
            if old != new:
                message = f"Only one of parameters and inputs has {shown(sorted(old ^ new))}."
                yield Flaw(child(pointer, "inputs"), message)


def _names(action: Mapping[str, object], place: str) -> set[str]:
    return {name for _, name in strings(action, place)}


def without_example(document: Document) -> Iterator[Flaw]:
    """Count the parameters for which no example, default or enumeration shows what a value looks like."""
    silent = [pointer for pointer, parameter in each_input(document) if not _shows_a_value(parameter)]
    if silent:
        yield Flaw(silent[0], f"{len(silent)} parameter(s) show no example value, this one first.")


def _shows_a_value(parameter: Mapping[str, object]) -> bool:
    rules = parameter.get("validation")
    named = any(parameter.get(name) is not None for name in ("example", "examples", "default", "enum"))
    return named or parameter.get("type") in ("boolean", "null") or (isinstance(rules, Mapping) and "enum" in rules)


def _faults(value: object, parameter: Mapping[str, object]) -> Iterator[str]:
    wanted = parameter.get("type")
    if isinstance(wanted, str) and wanted in TYPES and not is_type(value, wanted):
        yield f"is not of type {wanted}"
        return
    rules = parameter.get("validation")
    rules = rules if isinstance(rules, Mapping) else {}
    for allowed in (parameter.get("enum"), rules.get("enum")):
        if isinstance(allowed, list) and allowed and value not in allowed:
            yield "is not in the enumeration"
            return
    if isinstance(value, str):
        yield from _text_faults(value, rules)
    elif (number := _number(value)) is not None:
        yield from _limit_faults(number, rules, "min", "max", "")


def _text_faults(value: str, rules: Mapping[str, object]) -> Iterator[str]:
    pattern = rules.get("pattern")
    if isinstance(pattern, str) and matches(pattern, value) is False:
        yield f"does not match {shown(pattern)}"
    yield from _limit_faults(len(value), rules, "minLength", "maxLength", " characters")


def _limit_faults(number: float, rules: Mapping[str, object], low: str, high: str, unit: str) -> Iterator[str]:
    lowest, highest = _number(rules.get(low)), _number(rules.get(high))
    if lowest is not None and number < lowest:
        yield f"is below {low} {shown(rules[low])}{unit}"
    if highest is not None and number > highest:
        yield f"is above {high} {shown(rules[high])}{unit}"


def _number(value: object) -> float | None:
    """Narrow to a number; comparing int with float is exact in Python, so nothing is converted."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


CHECKS = (
    Check(
        "awas-unique-parameter",
        "warning",
        PARAMETERS,
        "The parameters of one action have different names.",
        "Rename one, or merge the two.",
        repeated_names,
    ),
    Check(
        "awas-inputs-disagree",
        "warning",
        f"{PARAMETERS}; {SCHEMA_1_1}",
        "parameters (1.0) and inputs (1.1) of one action have the same names.",
        "Derive both from one list.",
        disagreeing,
    ),
    Check(
        "awas-enum",
        "error",
        f"{SPEC_1_0}, Validation rule 6",
        "Enumerations are arrays with at least one item.",
        "List the allowed values, or leave the enumeration out.",
        bad_enumerations,
    ),
    Check(
        "awas-pattern",
        "error",
        PARAMETERS,
        "Validation patterns are regular expressions.",
        "Repair the expression; a backslash is written twice in JSON.",
        bad_patterns,
    ),
    Check(
        "awas-range",
        "warning",
        PARAMETERS,
        "Lower limits are not above upper limits, and lengths are not negative.",
        "Correct the limits: now no value is allowed.",
        empty_ranges,
    ),
    Check(
        "awas-default",
        "warning",
        PARAMETERS,
        "Default values have the type and keep the enumeration and validation of their parameter.",
        "Correct the default or the rule.",
        broken_defaults,
    ),
    Check(
        "awas-example",
        "warning",
        PARAMETERS,
        "Example values have the type and keep the enumeration and validation of their parameter.",
        "Correct the example or the rule.",
        broken_examples,
    ),
    Check(
        "awas-no-example",
        "info",
        f"{SPEC_1_0}, Best Practices 3",
        "Parameters show what a value looks like.",
        "Add an example.",
        without_example,
    ),
)
