"""Prompts: texts that a person fills in for their own model."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from awp_publish.plugin import Plugin
from awp_publish.plugins.prompts.prompts import Prompts


def _prompt(
    prompts: Prompts,
    prompt_id: str,
    /,
    *,
    title: str | None = None,
    description: str | None = None,
    complete: Callable[..., object] | Mapping[str, Callable[..., object]] | None = None,
) -> Callable[[Any], Any]:
    """Declare a prompt: a function that makes, from arguments a person fills in, a text for that person's own model.

    `complete` suggests values of its arguments: a function of the text typed so far, or a mapping of such functions.
    """
    return prompts.declare(prompt_id, title, description, complete)


PLUGIN = Plugin(
    name="prompts",
    is_default=True,
    start=lambda setup: Prompts(setup.site),
    declares={"prompt": _prompt},
    derive=lambda setup, catalog: replace(catalog, prompts=setup.state.resolve()),
)
