"""The file of approvals: no action is published before its owner has approved it, in a file under version control.

The file has a digest for each action and for each of its parts, so that changes can be reported. An action that is new,
or of which any part has changed, is hidden from everybody until it is approved (again).
"""

import hashlib
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

import orjson

from awp_publish.model import Action
from awp_publish.problems import DeclarationError

VERSION: Final = 1
PARTS: Final = ("inputs", "outputs", "effect", "words", "policy")


@dataclass(frozen=True, slots=True)
class ActionApproval:
    """The state of an action compared with the file. `changed` are the parts that differ from what was approved.

    `gone` means that an approved action no longer exists.
    """

    action: str
    state: Literal["approved", "new", "changed", "gone"]
    changed: tuple[str, ...] = ()

    def __str__(self) -> str:
        what = f" ({', '.join(self.changed)})" if self.changed else ""
        return f"{self.state:8} {self.action}{what}"


def digests_of(action: Action) -> dict[str, str]:
    """Return the digest of an action, and of each of its PARTS."""
    summary, rate = action.confirmation_summary, action.rate_limit
    parts: Mapping[str, object] = {
        "inputs": action.inputs,
        "outputs": action.outputs,
        "effect": action.effect,
        "words": [
            action.name,
            action.description,
            action.tags,
            action.examples,
            action.preconditions,
            summary if isinstance(summary, str) else summary is not None,
        ],
        "policy": {
            "auth_required": action.auth_required,
            "scopes": action.scopes,
            "audience": action.audience,
            "expose": None if action.expose is None else sorted(action.expose),
            "allow_agents": action.allow_agents,
            "rate_limit": str(rate) if rate is not None else None,
            "rate_limit_scope": rate.scope if rate is not None else None,
            **({"rate_limit_whom": rate.whom} if rate is not None and rate.whom else {}),
            "idempotency": action.idempotency is not None and [action.idempotency.window, action.idempotency.key_field],
            "confirm": action.needs_confirmation,
            "requires": action.requires,
            "depends_on": action.depends_on,
            "execution": action.execution,
        },
    }
    digests = {name: _digest(part) for name, part in parts.items()}
    return {"digest": _digest(digests), **digests}


def _digest(value: object) -> str:
    return hashlib.sha256(orjson.dumps(value, default=str, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


def read_approved(path: Path) -> Mapping[str, Mapping[str, str]]:
    """Return the approved digests by action; none without a file. Raises DeclarationError for a damaged file."""
    try:
        content = orjson.loads(path.read_bytes())
        actions = content["actions"]
        if content["version"] != VERSION:
            raise ValueError(f"version {content['version']!r} is not {VERSION}")
        if not all(isinstance(action["digest"], str) for action in actions.values()):
            raise ValueError("a digest is not text")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DeclarationError(
            "site",
            f"approval: {path} cannot be read ({type(error).__name__}: {error}).",
            "Take it from version control again, or delete it and run awp-publish approve.",
        ) from error
    approved: Mapping[str, Mapping[str, str]] = actions
    return approved


def write_approved(path: Path, approved: Mapping[str, Mapping[str, str]]) -> None:
    """Replace the file. The same actions always give the same bytes, with one line for each part."""
    content = {"version": VERSION, "actions": {name: dict(approved[name]) for name in sorted(approved)}}
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    new.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    os.replace(new, path)


def compare(actions: Iterable[Action], approved: Mapping[str, Mapping[str, str]]) -> tuple[ActionApproval, ...]:
    """Compare each action with its approval, in the order of declaration; approved actions that are gone come last."""
    approvals: dict[str, ActionApproval] = {}
    for action in actions:
        previous, now = approved.get(action.id), digests_of(action)
        if previous is None:
            approvals[action.id] = ActionApproval(action.id, "new")
        elif previous["digest"] == now["digest"]:
            approvals[action.id] = ActionApproval(action.id, "approved")
        else:
            changed = tuple(part for part in PARTS if previous.get(part) != now[part])
            approvals[action.id] = ActionApproval(action.id, "changed", changed)
    gone = (ActionApproval(name, "gone") for name in sorted(approved) if name not in approvals)
    return (*approvals.values(), *gone)


def withhold(
    actions: Sequence[Action], approved: Mapping[str, Mapping[str, str]], exempt: Collection[str]
) -> tuple[Action, ...]:
    """Mark actions that are not approved, and those that require one of these, because nobody could call them."""
    standing = compare((action for action in actions if action.id not in exempt), approved)
    open_ids = {approval.action for approval in standing if approval.state == "approved"} | set(exempt)
    waiting = True
    while waiting:
        stuck = {action.id for action in actions if action.id in open_ids and not open_ids.issuperset(action.requires)}
        open_ids -= stuck
        waiting = bool(stuck)
    return tuple(replace(action, is_approved=action.id in open_ids) for action in actions)
