"""actions.json: the maps of the site's pages, and the bridge by which agents use them in a visitor's tab."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

from pydantic import PlainValidator

from awp_publish.calls.call import Call, Result
from awp_publish.model import Catalog, JsonObject, Paths
from awp_publish.plugin import CallHooks, Context, Door, Endpoints, Finding, Plugin, Setup
from awp_publish.plugins.actions_json.document import PROTOCOL, SITE_ACTION, SITE_INPUTS
from awp_publish.plugins.actions_json.options import Bridge
from awp_publish.plugins.actions_json.problems import RuntimeFailed

VERSION = "1"


def _declare_tool(setup: Setup) -> None:
    """Declare `actions.site` as an action, so that the same gates and doors apply to it."""
    title = "Pages of this site"
    words = "List, call or read what this site's actions.json offers on the current page."
    tool = setup.site.agent(SITE_ACTION, name=title, description=words)
    options = {"name": title, "inputs": SITE_INPUTS, "outputs": {"type": "object"}, "effect": "write"}

    @tool.operation("default", **options)  # type: ignore[untyped-decorator]
    def at_the_bridge(
        mode: str,
        action: str = "",
        arguments: object = None,
        projection_name: str = "",
        summary_name: str = "",
        max_bytes: int = 0,
        target_runtime_id: str = "",
    ) -> dict[str, Any]:
        raise AssertionError("The bridge carries it out.")


def _doors(setup: Setup, paths: Paths) -> Iterator[Door]:
    yield Door(
        name="bridge", version=VERSION, path=paths.bridge, open=lambda context: context.ask("bridge").endpoints()
    )


def _open(context: Context) -> Endpoints:
    return context.ask("bridge").endpoints()  # type: ignore[no-any-return]


def _at(context: Context) -> Any:
    """Return the bridge at one address."""
    from awp_publish.plugins.actions_json.bridge import BridgeDoor

    [door] = _doors(context.setup, context.catalog.paths)
    return BridgeDoor(context.at_door(door))


def _calls(context: Context) -> CallHooks:
    async def answer(call: Call) -> Result:
        return await context.ask("bridge").answer_tool(call)  # type: ignore[no-any-return]

    return CallHooks(handlers={SITE_ACTION: answer})


def _read_map(value: object) -> JsonObject:
    from awp_publish.plugins.actions_json.declared_map import read_map  # where a page has a map at all

    return read_map(value)


def _check_maps(setup: Setup, catalog: Catalog) -> Iterable[Finding]:
    if any(page.options.get("map") for page in catalog.pages):
        from awp_publish.plugins.actions_json.declared_map import check_references

        check_references(catalog)
    return ()


PLUGIN = Plugin(
    name="actions_json",
    is_default=True,
    documents=(PROTOCOL,),
    page_options={"map": Annotated[Mapping[str, Any], PlainValidator(_read_map)]},
    check=_check_maps,
)
BRIDGE = Plugin(
    name="bridge",
    options=Bridge,
    needs={"selectolax": "actions"},
    problems=(RuntimeFailed,),
    prepare=_declare_tool,
    at=_at,
    calls=_calls,
    doors=_doors,
)
