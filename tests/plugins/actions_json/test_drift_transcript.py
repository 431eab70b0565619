"""What has drifted of a page and its map, whole: `drift.txt`, in the words of `tests/function_transcripts.py`."""

import json
import re
from pathlib import Path

from tests.function_transcripts import compare
from tests.plugins.actions_json.test_drift import drifts


def drift(changes: dict[str, object]) -> list[object]:
    found = [[str(each), each.level, each.describe()] for each in drifts(**changes)]  # type: ignore[arg-type]
    text = re.sub(r"(observed_at\\*\": \\*\")[^\"\\]+", r"\1...", json.dumps(found))
    answer: list[object] = json.loads(re.sub(r"(duration_ms\\*\": )\d+", r"\1...", text).replace("...,", "0,"))
    return answer


def test_drift_is_reported_as_in_the_transcript(request):
    compare(Path(__file__).parent / "drift.txt", {"drift": drift}, request)
