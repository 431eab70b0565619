"""What the conformance scenarios are run against: a site with what some of them ask for by name."""

import asyncio
import logging
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from awp_publish import AgentPublisher, Site, report_progress
from awp_publish.http.exchange import AsgiApp
from awp_publish.problems import Refused

SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


WITH_HEADER: dict[str, Any] = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    "additionalProperties": False,
}

PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
FILE = "JVBERi0xLjQKJSVFT0YK"
SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="


def encoded(kind: str) -> dict[str, Any]:
    """The schema of what is no text."""
    return {"type": "string", "contentEncoding": "base64", "contentMediaType": kind}


def make_application(url: str) -> AsgiApp:
    """The application, for one address."""
    site = Site(
        "Conformance", "What the published scenarios are run against.", url=url, plugins=["mcp"], secret_keys=["k" * 32]
    )

    @site.agent("test_simple_text", effect="read")
    async def test_simple_text() -> str:
        """Answer with a simple text."""
        return "This is a simple text response for testing."

    @site.agent("test_error_handling")
    async def test_error_handling() -> str:
        """Fail, as it should."""
        raise RuntimeError("This tool intentionally returns an error for testing")

    @site.agent("json_schema_2020_12_tool", inputs=SCHEMA_2020_12, effect="read")
    async def json_schema_2020_12_tool(given: dict[str, Any]) -> str:
        """Take an input whose schema uses the keywords of JSON Schema 2020-12."""
        return "done"

    @site.agent("test_image_content", effect="read", outputs=encoded("image/png"))
    async def test_image_content() -> str:
        """Answer with a picture."""
        return PICTURE

    @site.agent("test_audio_content", effect="read", outputs=encoded("audio/wav"))
    async def test_audio_content() -> str:
        """Answer with a sound."""
        return SOUND

    @site.agent("test_embedded_resource", effect="read", outputs=encoded("application/pdf"))
    async def test_embedded_resource() -> str:
        """Answer with a file."""
        return FILE

    @site.agent("look_up_weather", inputs=WITH_HEADER, effect="read")
    async def look_up_weather(given: dict[str, Any]) -> str:
        """Take an input that a header of the request repeats."""
        return f"Sunny in {given.get('region', 'general')}."

    @site.agent("test_logging_tool", effect="read")
    async def test_logging_tool() -> str:
        """Write to the site's own log, which no client is sent."""
        logging.getLogger(__name__).info("called")
        return "logged"

    @site.agent("test_tool_with_progress", effect="read")
    async def test_tool_with_progress() -> str:
        """Tell how far it is."""
        for fraction in (0.0, 0.5, 1.0):
            report_progress(fraction)
            await asyncio.sleep(0.15)
        return "done"

    @site.agent("greet", effect="read")
    async def greet(name: str) -> str:
        """Greet somebody."""
        return f"Hello, {name}!"

    for changed in ("tool", "prompt"):

        @site.agent(f"test_trigger_{changed}_change", effect="idempotent")
        async def change() -> str:
            """Publish the site anew, of which those are told who listen."""
            site.refresh()
            return "published"

    @site.agent("slow_compute", execution="async", effect="read")
    async def slow_compute(seconds: float = 0, label: str = "") -> str:
        """Take a while."""
        await asyncio.sleep(seconds)
        return f"computed {label}"

    @site.agent("failing_job", execution="async")
    async def failing_job() -> str:
        """Refuse, as it should."""
        raise Refused("This job always refuses.")

    @site.agent("protocol_error_job", execution="async")
    async def protocol_error_job() -> str:
        """Crash, as it should."""
        raise RuntimeError("This job always crashes.")

    @site.agent("confirm_delete", execution="async", confirm="Delete {filename}?", effect="delete")
    async def confirm_delete(filename: str) -> str:
        """Delete a file once a person has agreed."""
        return f"deleted {filename}"

    for name in (
        "test_input_required_result_tampered_state",
        "test_input_required_result_request_state",
        "test_streaming_elicitation",
    ):

        @site.agent(name, confirm=True)
        async def confirmed() -> str:
            """Be done once a person has agreed."""
            return "state-ok"

    @site.prompt("test_simple_prompt")
    def test_simple_prompt() -> str:
        """Ask for something simple."""
        return "This is a simple prompt for testing."

    @site.prompt("test_prompt_with_image")
    def test_prompt_with_image() -> list[tuple[str, ...]]:
        """Ask about a picture."""
        return [("user", PICTURE, "image/png"), ("user", "Please analyze the image above.")]

    @site.prompt("test_prompt_with_embedded_resource")
    def test_prompt_with_embedded_resource(resourceUri: str) -> list[tuple[str, ...]]:  # noqa: N803, its published name
        """Ask about a file."""
        return [("user", FILE, "application/pdf"), ("user", f"Please process the file of {resourceUri} above.")]

    site.skill("refunds", Path(__file__).parent / "skills" / "refunds")

    @site.prompt("test_prompt_with_arguments", complete=lambda value: [f"{value}is", f"{value}k"])
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        """Repeat what is filled in."""
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    app = FastAPI()
    app.add_middleware(AgentPublisher, site=site)
    return app
