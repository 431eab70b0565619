"""A page as Markdown (CommonMark 0.31.2 with GFM's tables, task lists and strikethrough) for people and models.

Everything visible in the page is included, in its order, also the fields of forms. Addresses are absolute, so that the
text stands alone. The page's title becomes the first heading unless the page has one of that level. Every HTML has a
Markdown, made in time and size proportional to it: deep nesting is flattened where it no longer matters to a reader.
"""

from awp_publish.pages.markdown.page import (
    OMISSION as OMISSION,
    write_content as write_content,
    write_markdown as write_markdown,
)
