"""Whether an action has consequences, judged by what it is called."""

from __future__ import annotations

import re

READING_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
READING_WORDS = frozenset(("get", "list", "search", "find", "read", "view", "show", "check", "track", "fetch", "look"))
READING_WORDS |= {"lookup", "count", "preview", "query", "browse", "compare", "validate", "estimate", "calculate"}
READING_WORDS |= {"quote", "describe", "status", "history", "undo", "restore"}
GRAVE_WORDS = frozenset(
    ("delete", "remove", "cancel", "pay", "purchase", "order", "checkout", "buy", "destroy", "erase")
)
GRAVE_WORDS |= {"purge", "wipe", "refund", "transfer", "terminate", "unsubscribe", "drop"}
# In prose "order" and "drop" mean too much: there they count only as the first word ("Order the basket").
GRAVE_VERBS = re.compile(
    r"\A\W*(?:order|orders|place an order|buy|buys|transfer|transfers|terminate|terminates)\b"
    r"|\b(?:delete|deletes|remove|removes|cancel|cancels|pay for|pays for|purchases?|checkout|check out|erases?|"
    r"destroys?|permanently)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


def grave_word(identifier: object, description: object, method: object) -> str | None:
    """Give the method or word that tells of consequences, or None for an action that only reads or seems harmless."""
    if isinstance(method, str) and method.upper() == "DELETE":
        return "DELETE"
    if isinstance(method, str) and method.upper() in READING_METHODS:
        return None
    words = [word.lower() for word in _WORD.findall(identifier)] if isinstance(identifier, str) else []
    if words and words[0] in READING_WORDS:
        return None
    found = next((word for word in words if word in GRAVE_WORDS), None)
    if found or not isinstance(description, str):
        return found
    match = GRAVE_VERBS.search(description[:300])
    return match[0].strip().lower() if match else None
