"""WebMCP: the site's actions as tools of the page that a visitor has open (W3C Community Group draft, 20 October 2026).

One script, without a build step, registers a tool for each action with `document.modelContext`, or with the older
`navigator.modelContext`, and does nothing in a browser that has neither. A tool calls the WoA door with the visitor's
own session; confirmations are asked for in the page. Answers are texts, as the draft requires.
"""

from typing import Final

import orjson

from awp_publish.documents.members import located, present
from awp_publish.documents.protocol import Document, Protocol
from awp_publish.model import Catalog
from awp_publish.schema.reading import members, object_facts, resolved

SUFFIX: Final = "/webmcp.tools.js"
MEDIA_TYPE: Final = "text/javascript; charset=utf-8"

_TEXTLESS_TYPES: Final = ("integer", "number", "boolean", "null")


def address_of(catalog: Catalog) -> str:
    """Return the path of the script."""
    return catalog.paths.root + SUFFIX


def render(catalog: Catalog) -> bytes:
    tools = []
    for action in catalog.actions:
        # A text may be somebody else's; numbers and enumerated values are not.
        facts = resolved(action.outputs, action.outputs)
        inner = members(object_facts(facts, action.outputs))
        parts = [resolved(part, action.outputs) for part in inner.values()] if inner else [facts]
        annotations = {
            "readOnlyHint": action.effect == "read",
            "destructiveHint": action.sensitivity in ("destructive", "irreversible") or None,
            "idempotentHint": action.effect in ("read", "idempotent"),
            "consequentialHint": action.needs_confirmation or action.sensitivity == "irreversible" or None,
            "untrustedContentHint": not all(part.get("type") in _TEXTLESS_TYPES or "enum" in part for part in parts),
        }
        tool = {
            "name": action.id,
            "title": action.name,
            "description": " ".join(action.description.split()),
            "inputSchema": action.inputs,
            "annotations": present(annotations),
            "url": located(catalog, catalog.invoke_path_of(action)),
            "agent": None if "{agent_id}" in catalog.paths.invoke else action.agent_id,
            "operation": action.operation,
            "key": action.idempotency.key_field if action.idempotency else None,
        }
        tools.append(present(tool))
    # Escaped so that the script could also be inlined, where "</script" and "<!--" have a meaning.
    return _SCRIPT.replace(b"TOOLS_OF_THE_SITE", orjson.dumps(tools).replace(b"<", b"\\u003c"), 1)


_SCRIPT: Final = rb"""// Tools of this site for agents in the browser (WebMCP), made from what the site declares.
const TOOLS = TOOLS_OF_THE_SITE;

const receipts = new Map();  // of a visitor without a session: what has succeeded, by action

async function send(tool, input, confirmation, key) {
  const body = {agent: tool.agent, operation: tool.operation, input};
  if (confirmation) body.confirmation = confirmation;
  if (key) body[tool.key] = key;
  if (receipts.size) body.receipts = [...receipts.values()];
  const headers = {"Content-Type": "application/json", Accept: "application/json"};
  return fetch(tool.url, {method: "POST", credentials: "same-origin", headers, body: JSON.stringify(body)});
}

async function finished(response) {  // a job is polled until it has ended
  const place = response.status === 202 && response.headers.get("Location");
  while (place) {
    const seconds = Number(response.headers.get("Retry-After")) || 1;
    await new Promise((resolve) => setTimeout(resolve, Math.min(seconds, 30) * 1000));
    response = await fetch(place, {credentials: "same-origin"});
    if (!response.ok) break;
    const {status} = await response.clone().json();
    if (status !== "accepted" && status !== "running") break;
  }
  return response;
}

async function call(tool, input, client) {
  const key = tool.key && crypto.randomUUID();
  let response = await send(tool, input ?? {}, undefined, key);
  if (response.status === 428) {
    const {confirmation} = await response.clone().json();
    if (confirmation) {
      const ask = async () => window.confirm(confirmation.summary);
      const agrees = client?.requestUserInteraction ? await client.requestUserInteraction(ask) : await ask();
      if (!agrees) return "Not done: the person did not agree.";
      response = await send(tool, input ?? {}, confirmation.token, key);
    }
  }
  const receipt = response.headers.get("AWP-Receipt");
  if (receipt) receipts.set(tool.name, receipt);
  response = await finished(response);
  const text = await response.text();
  if (response.ok) return text || "Done.";
  try {
    const {code, detail, title, recovery, errors} = JSON.parse(text);
    return "Error " + JSON.stringify({code, detail: detail ?? title, recovery, errors});
  } catch {
    return `Error: the site answered with status ${response.status}.`;
  }
}

const contexts = new Set([document.modelContext, navigator.modelContext].filter((one) => one?.registerTool));
for (const context of contexts) {
  for (const tool of TOOLS) {
    if (document.querySelector(`form[toolname="${tool.name}"][tooldescription]`)) continue;  // is that tool itself
    const {name, title, description, inputSchema, annotations} = tool;
    const execute = (input, client) => call(tool, typeof input === "string" ? JSON.parse(input) : input, client);
    try {
      Promise.resolve(context.registerTool({name, title, description, inputSchema, annotations, execute}))
        .catch((error) => console.warn("WebMCP", name, error.name));
    } catch (error) {
      console.warn("WebMCP", name, error.name);
    }
  }
}
"""

PROTOCOL = Protocol(
    "webmcp",
    documents=(
        Document(
            "/agents" + SUFFIX,
            MEDIA_TYPE,
            render,
            condition=lambda catalog: bool(catalog.actions) and catalog.door("woa") is not None,
            moved=address_of,
            door="woa",
        ),
    ),
)
"""Pages include the script themselves, with `awp_publish.plugins.templating.webmcp_script`."""
