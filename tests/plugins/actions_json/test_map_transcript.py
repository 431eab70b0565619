"""The maps that sites publish, whole: `maps.txt`, in the words of `tests/function_transcripts.py`.

`site` is given the options of actions by their names, and then those of pages by their paths; of a map it tells what
every site's map has not.
"""

from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from awp_publish import Site
from awp_publish.plugins.actions_json import document
from tests.function_transcripts import compare
from tests.installed import taken_out

INPUTS = {
    "type": "object",
    "properties": {
        "q": {"type": "string"},
        "many": {"type": "integer"},
        "price": {"type": "number"},
        "new": {"type": "boolean"},
        "sort": {"enum": ["title", "date"]},
    },
    "required": ["q"],
}
FIELDS = {"q": "#q", "many": "#many", "price": "#price", "new": "#new", "sort": "input[type=radio][name=sort]"}


def site(actions: dict[str, Any], *pages: Any) -> Any:
    made = Site("Shop", "Sells things.", url="https://shop.example/sub", plugins=["bridge"])
    for name, options in actions.items():
        chosen = options.pop("fields", FIELDS)
        inputs = {**INPUTS, **options.pop("inputs", {})}
        awas = {"selectors": {field: css for field, css in FIELDS.items() if field in chosen} | options.pop("more", {})}
        awas |= {"selector": options.pop("selector")} if "selector" in options else {}
        plain = {"method": "POST", "path": f"/{name}", "description": f"Do {name}.", "inputs": inputs, "outputs": {}}
        made.declare(name, **{**plain, "awas": awas, **options})
    for path, options in pages:
        made.page(path, **options)
    published = document.render(made.freeze(Starlette()))
    return {name: part for name, part in published.items() if name not in ("protocol", "version", "surface") and part}


@pytest.mark.skipif(bool(taken_out()), reason="the bridge and what actions ask for is needed")
def test_maps_of_sites_are_written_as_in_the_transcript(request):
    compare(Path(__file__).parent / "maps.txt", {"site": site}, request)
