"""File parts of a message as inputs of a skill, with their names and media types (specification, section 4.1.6)."""

import base64
import mimetypes
from collections.abc import Iterable

from a2a.types.a2a_pb2 import Part

from awp_publish.model import Action, JsonObject
from awp_publish.problems import InvalidInput, Violation
from awp_publish.schema.files import file_inputs


def is_file(part: Part) -> bool:
    return bool(part.WhichOneof("content") == "raw")


def takes_files(action: Action) -> bool:
    return next(file_inputs(action.inputs), None) is not None


def with_files(action: Action, arguments: JsonObject, parts: Iterable[Part]) -> JsonObject:
    """Return an input with the files of a message: each in the input that its metadata names, or else in the next free.

    A list takes all that are left. Raises InvalidInput for a file for which there is no input.
    """
    inputs = {name: (is_list, has_name) for name, is_list, has_name in file_inputs(action.inputs)}
    filled = dict(arguments)
    free = [name for name in inputs if name not in arguments]
    for part in parts:
        requested = part.metadata.fields["input"].string_value if "input" in part.metadata.fields else ""
        name = requested or next(iter(free), "")
        if name not in inputs:
            choices = f"There are: {', '.join(inputs)}." if inputs else "It takes no file."
            detail = f'has no input for the file "{part.filename[:100]}". {choices}'
            raise InvalidInput(f"Action {action.id} {detail}", errors=[Violation("", detail)])
        is_list, has_name = inputs[name]
        content = _content(part, name) if has_name else base64.b64encode(part.raw).decode()
        if is_list:
            before = filled.get(name)
            filled[name] = [*(before if isinstance(before, list) else []), content]
        else:
            filled[name] = content
            free = [other for other in free if other != name]
    return filled


def _content(part: Part, name: str) -> dict[str, object]:
    filename = part.filename or name + (mimetypes.guess_extension(part.media_type.partition(";")[0].strip()) or "")
    kind = {"content_type": part.media_type} if part.media_type else {}
    return {"filename": filename, **kind, "content": base64.b64encode(part.raw).decode()}
