"""The primitives of actions.json workflows: the primitive dictionary, version 1, and those of the overlay runtime.

A row lists a primitive's arguments: `name:type`, with `*` if it is required; alternatives are the values of an
enumeration. There are no other arguments.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from awp_publish.schema import JsonObject

PORTABLE: Final[Mapping[str, str]] = {
    "pointer.move": "x*:number y*:number duration_ms:integer",
    "pointer.click": "x*:number y*:number button:left|middle|right modifiers:array",
    "pointer.double_click": "x*:number y*:number",
    "pointer.drag": "from*:object to*:object duration_ms:integer steps:integer",
    "viewport.scroll": "delta_x:number delta_y:number scope:object item_selector:string",
    "text.insert": "text*:string target:object mode:append|replace",
    "clipboard.write": "text*:string",
    "clipboard.read": "",
    "page.info": "",
    "dom.observe.visible": "selector:string text_contains:string",
    "dom.snapshot_text": "selector:string max_chars:integer",
    "dom.list_sections": "selector:string heading_selector:string item_selector:string text_contains:string "
    "max_sections:integer max_heading_length:integer frame:any",
    "locator.element_info": "locator*:object",
    "locator.text_content": "locator*:object",
    "locator.wait_for": "locator*:object state:attached|visible timeout_ms:integer",
    "keyboard.press": "key*:string modifiers:array trusted:boolean",
}
"""Primitives that a page can carry out itself. `keyboard.press` needs the browser's help for some keys."""

PRIVILEGED: Final[Mapping[str, str]] = {
    "browser.screenshot": "format:png|jpeg quality:integer max_width:integer max_height:integer max_kilobytes:integer "
    "max_kb:integer delay_ms:integer capture_timeout_ms:integer",
    "browser.claimed_tabs.list": "",
    "browser.claimed_tabs.activate": "tab_id*:integer",
    "browser.navigate": "url:string reload:boolean tab_id:integer",
    "browser.open_tab": "url:string active:boolean",
    "browser.close_tab": "tab_id:integer",
    "browser.dismiss_dialog": "tab_id:integer accept:boolean prompt_text:string",
    "browser.extract_elements": "item_selector*:string fields*:array scope:object",
    "browser.run_javascript": "source*:string javascript:string args:object",
    "debug.run_javascript": "source*:string javascript:string args:object",
    "storage.read_file": "path:string id:string max_bytes:integer",
    "storage.import_bundle": "bundle*:object",
    "storage.list": "",
    "transfer.insert": "label:string id:string target:object item_selector:object render:object mode:replace|append",
    "transfer.clear": "label:string id:string scope:session",
    "transfer.read": "label:string id:string include_value:boolean",
    "transfer.write": "label*:string format*:text/plain|application/json|text/uri-list value*:any metadata:object "
    "ttl_seconds:integer mode:replace|append redaction:object",
    "runtime.session.name": "name*:string",
    "runtime.session.finalize_tabs": "",
    "runtime.session.log": "limit:integer",
    "runtime.configure_pacing": "min_interval_ms:integer",
    "runtime.agent.start": "text_only:boolean",
    "runtime.agent.stop": "",
    "runtime.agent.memory_clear": "",
    "runtime.agent.user_message": "text*:string mode:queue|interrupt",
    "overlay.open": "html:string template:object data:object title:string width:integer height:integer launchers:array",
    "overlay.register_launcher": "launchers*:array html:string template:object data:object title:string width:integer "
    "height:integer",
    "overlay.close": "",
    "overlay.menu.hide": "",
    "overlay.menu.show": "",
    "overlay.menu.collapse": "",
    "overlay.menu.expand": "",
    "overlay.menu.move": "corner:top-left|top-right|bottom-left|bottom-right left:number top:number",
    "keyboard.press_gated": "key*:string stop*:count|until|path modifiers:array count:integer expect:any polarity:any "
    "max_presses:integer",
    "task.add": "text:string tasks:array",
    "task.next": "",
    "task.complete": "id:string status:done|failed result:string",
    "task.list": "",
    "task.clear": "",
    "text.select": "target:object mode:all",
    "text.type": "text*:string trusted:boolean mode:string select_back_chars:number",
    "clipboard.copy": "target:object",
    "clipboard.paste": "text:string html:string target:object",
    "page.fetch": "url*:string",
    "marker.query": "id*:string",
    "cursor.move_to": "marker*:string",
    "pointer.move_to": "marker*:string",
    "a11y.tree": "tab_id:integer max_depth:integer max_nodes:integer",
    "a11y.query": "tab_id:integer role:string name:string name_contains:string",
    "a11y.events.read": "since:integer limit:integer",
    "a11y.announcements_subscribe": "subscriber:mcp|hosted tab_id:integer assertive:inject|buffer|off "
    "polite:inject|buffer|off",
    "a11y.announcements_configure": "subscriber:mcp|hosted tab_id:integer assertive:inject|buffer|off "
    "polite:inject|buffer|off",
    "a11y.watch": "tab_id:integer enable_screen_reader:boolean screen_reader_chord:string",
}
"""Primitives of a browser extension or a host. A runtime that lacks them answers `capability_unavailable`."""

PRIMITIVES: Final[Mapping[str, str]] = {**PORTABLE, **PRIVILEGED}

_TYPES: Final = frozenset(("string", "number", "integer", "boolean", "object", "array"))


@lru_cache(maxsize=128)
def arguments_of(primitive: str) -> JsonObject:
    """Return the JSON Schema of a primitive's arguments. Raises KeyError for an unknown one."""
    properties: dict[str, JsonObject] = {}
    required: list[str] = []
    for argument in PRIMITIVES[primitive].split():
        name, _, kind = argument.partition(":")
        if name.endswith("*"):
            name = name[:-1]
            required.append(name)
        properties[name] = {} if kind == "any" else {"type": kind} if kind in _TYPES else {"enum": kind.split("|")}
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
