"""What the history of a task keeps of a message: neither sessions nor files, and no secret input."""

from a2a.types.a2a_pb2 import Message, Part, Task

from awp_publish.plugins.a2a.files import is_file
from awp_publish.plugins.a2a.record import LEFT_OUT
from awp_publish.plugins.a2a.tasks import MAX_HISTORY


def keep(message: Message, task: Task) -> Message:
    """Add a message to the history of a task, without its session and its files, and return what was added."""
    added = task.history.add()
    added.CopyFrom(message)
    added.task_id, added.context_id = task.id, task.context_id
    data = (part.data.struct_value for part in added.parts if part.HasField("data"))
    for struct in (added.metadata, *data):
        if "session" in struct.fields:
            del struct.fields["session"]
    for part in added.parts:
        if is_file(part):  # the part keeps its name and its media type
            part.text = LEFT_OUT
    del task.history[:-MAX_HISTORY]
    return added


def leave_out(message: Message, task: Task, *, has_secrets: bool) -> None:
    """Leave out of the history what may be secret in a message that names no known skill: nothing can be redacted.

    `has_secrets` says that some skill has secret inputs. A skill that the caller may not know of counts as unknown, so
    that its messages look like all others.
    """
    entries = [earlier for earlier in task.history if earlier.message_id == message.message_id]
    if not entries:
        return
    calls = [part for part in message.parts if part.text.lstrip().startswith(("{", "["))]
    if has_secrets:
        words = [part for part in message.parts if part.text and part not in calls]
        replace_parts(entries[-1], words or [Part(text=LEFT_OUT)])
        return
    parts = [Part(text=LEFT_OUT) if part in calls else part for part in message.parts]
    del entries[-1].parts[:]
    entries[-1].parts.extend(parts)


def replace_parts(message: Message, parts: list[Part]) -> None:
    """Give a message other parts, and no metadata."""
    message.ClearField("metadata")
    del message.parts[:]
    message.parts.extend(parts)
