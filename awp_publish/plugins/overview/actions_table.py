"""All actions as one table, grouped by tag, which is filtered and sorted with or without scripts."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from awp_publish.model import Action, Effect
from awp_publish.plugins.overview.html import Html, tag
from awp_publish.plugins.overview.markup import NO_FIGURE, count_words, fill, icon
from awp_publish.plugins.overview.view import CallCounts, View
from awp_publish.plugins.overview.words import EFFECT_NAMES, EFFECT_WORDS, Badge, guards_of, limit_words

MAX_SENTENCE: Final = 160
UNTAGGED: Final = "Other actions"

_EFFECTS: Final[tuple[Effect, ...]] = ("read", "idempotent", "write", "delete", "irreversible")


@dataclass(frozen=True, slots=True)
class Choice:
    """The filter and the order of the table: words to search for, an effect, and a column, each "" for all."""

    words: str = ""
    effect: str = ""
    sort: str = ""

    @classmethod
    def read(cls, fields: Mapping[str, object]) -> "Choice":
        """Return the choice of a query. Unknown effects and columns are ignored."""
        words, effect, sort = (str(fields.get(name, "")).strip()[:100] for name in ("words", "effect", "sort"))
        return cls(words, effect if effect in _EFFECTS else "", sort if sort in _KEYS else "")

    def takes(self, action: Action) -> bool:
        text = f"{action.id} {action.name} {action.description} {' '.join(action.tags)}".lower()
        return self.effect in ("", action.effect) and all(word in text for word in self.words.lower().split())


_KEYS: Final[Mapping[str, Callable[[Action, CallCounts | None], Any]]] = {
    "name": lambda action, own: action.name.lower(),
    "effect": lambda action, own: (_EFFECTS.index(action.effect), action.name.lower()),
    "calls": lambda action, own: -own.calls if own else 0,
    "errors": lambda action, own: -own.errors if own else 0,
    "p95": lambda action, own: -(own.p95 or 0.0) if own else 0.0,
}


def first_sentence(text: str) -> str:
    """Return the first sentence of a description, shortened to one line or two."""
    sentence, end, _ = " ".join(text.strip().split("\n\n", 1)[0].split()).partition(". ")
    sentence += end.strip()
    return sentence if len(sentence) <= MAX_SENTENCE else f"{sentence[: MAX_SENTENCE - 1].rstrip()}…"


def actions_section(view: View, all_figures: Mapping[str, CallCounts], choice: Choice) -> Html:
    """Return the table with what holds for all actions above it."""
    catalog = view.catalog
    if not catalog.actions:
        return tag("p", "No action is published.", class_="none")
    doors = {action.id: view.doors_of(action) for action in catalog.actions}
    usual_doors = list(Counter(map(tuple, doors.values())).most_common(1)[0][0])
    guards = {action.id: guards_of(action) for action in catalog.actions}
    shared = _shared(list(guards.values()))
    actions = [action for action in catalog.actions if choice.takes(action)]

    def row(action: Action, *, has_tag: bool) -> Html:
        own = all_figures.get(action.id)
        badges = [_badge(guard) for guard in guards[action.id] if guard not in shared]
        if doors[action.id] != usual_doors:
            words = f"only {', '.join(doors[action.id])}" if doors[action.id] else "no open door"
            badges.append(_badge(Badge("door", words, "Doors", words)))
        is_degraded = action.id in catalog.status.degraded_actions
        return fill(
            "action",
            id=action.id,
            name=action.name,
            here=f"{view.root}/try/{action.id}",
            sentence=first_sentence(action.description),
            tag=action.tags[0] if has_tag and action.tags else None,
            degraded="degraded at the moment" if is_degraded else None,
            effect=action.effect,
            effect_icon=icon(f"effect-{action.effect}"),
            effect_name=EFFECT_NAMES[action.effect],
            effect_words=EFFECT_WORDS[action.effect],
            guards=badges,
            calls=f"{own.calls:,}" if own else NO_FIGURE,
            errors=NO_FIGURE if own is None else tag("span", f"{own.errors:,}", class_="error") if own.errors else "0",
            p95=(own.p95_text if own else None) or NO_FIGURE,
        )

    groups = list[Html]()
    if choice.sort:
        key = _KEYS[choice.sort]
        ordered = sorted(actions, key=lambda action: key(action, all_figures.get(action.id)))
        groups.append(tag("tbody", [row(action, has_tag=True) for action in ordered]))
    else:
        for title, members in _grouped(actions):
            head = None
            if title != UNTAGGED or len(groups):
                head = fill("group", title=title, count=len(members))
            groups.append(tag("tbody", (head, [row(action, has_tag=False) for action in members])))
    return fill(
        "actions",
        root=view.root,
        shared=_sentences(view, usual_doors, shared),
        words=choice.words,
        effects=[
            tag("option", EFFECT_NAMES[effect], value=effect, selected=effect == choice.effect)
            for effect in _EFFECTS
            if any(action.effect == effect for action in catalog.actions)
        ],
        sort=tag("input", type="hidden", name="sort", value=choice.sort) if choice.sort else None,
        count=f"{len(actions):,} of {count_words(len(catalog.actions), 'action')}",
        heads=[_head(view.root, choice, *column) for column in _COLUMNS],
        groups=groups or tag("tbody", fill("no_actions")),
        size="long" if len(catalog.actions) > 30 else "short",
    )


_COLUMNS: Final = (
    ("name", "Action"),
    ("effect", "Effect"),
    ("", "Guards"),
    ("calls", "Calls"),
    ("errors", "Errors"),
    ("p95", "p95"),
)


def _head(root: str, choice: Choice, column: str, title: str) -> Html:
    kind = "number" if column in ("calls", "errors", "p95") else None
    if not column:
        return tag("th", title, scope="col", class_=kind)
    is_sorted = choice.sort == column
    query = {"words": choice.words, "effect": choice.effect, "sort": "" if is_sorted else column}
    href = f"{root}?{urlencode({name: value for name, value in query.items() if value})}#actions"
    order = ("ascending" if column in ("name", "effect") else "descending") if is_sorted else None
    return tag("th", tag("a", title, href=href, class_="sort"), scope="col", class_=kind, aria_sort=order)


def _badge(guard: Badge) -> Html:
    return fill("badge", icon=icon(guard.icon), short=guard.short, words=f"{guard.term}: {guard.words}")


def _grouped(actions: Iterable[Action]) -> list[tuple[str, list[Action]]]:
    """Return the actions by their first tag, in the order of declaration, those without a tag last."""
    groups: dict[str, list[Action]] = {}
    for action in actions:
        groups.setdefault(action.tags[0] if action.tags else UNTAGGED, []).append(action)
    untagged = groups.pop(UNTAGGED, None)
    return [*groups.items(), *([(UNTAGGED, untagged)] if untagged else [])]


def _shared(guards: Sequence[Sequence[Badge]]) -> list[Badge]:
    return [guard for guard in guards[0] if all(guard in own for own in guards)] if len(guards) > 1 else []


def _sentences(view: View, doors: Sequence[str], shared: Sequence[Badge]) -> list[Html]:
    """Return what holds for every action unless its row says otherwise, as items of a list."""
    actions, catalog = view.catalog.actions, view.catalog
    items: list[tuple[str, object]] = [("Doors", ", ".join(doors) or "none is open")]
    items += ((guard.term, guard.words) for guard in shared)
    if catalog.site.rate_limit is not None:
        items.append(("Limit", f"{limit_words(catalog.site.rate_limit)}, over all actions"))
    times = {action.timeout for action in actions}
    if len(times) == 1:
        items.append(("Time limit", f"{times.pop():g} seconds"))
    return [tag("li", tag("b", f"{term}: "), words) for term, words in items]
