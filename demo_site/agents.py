"""What the shop says about itself, and what only programs ask it for."""

from typing import Annotated

from pydantic import Field

from demo_site.models import Summary
from demo_site.summarize import summarize

NAME = "First Lines"
DESCRIPTION = "A small bookshop of public-domain books, each shelved with its opening sentence."

SourceText = Annotated[str, Field(description="Input document text in English.", max_length=1_000_000)]
MostWords = Annotated[int, Field(ge=10, le=500, description="Maximum number of words in the summary.")]


def summarize_text(text: SourceText, max_words: MostWords = 100) -> Summary:
    """Summarizes English text."""
    return Summary(summary=summarize(text, max_words))
