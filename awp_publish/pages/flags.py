"""Flags that apply to everything within an element: bits of one number."""

from typing import Final

COVERED: Final = 1
"""Within an element that has the text: only controls, headings and images become elements of their own."""
DISABLED: Final = 2
INERT: Final = 4
IN_FORM: Final = 8
IN_LANDMARK: Final = 16
IN_LINK: Final = 32
IN_LAYOUT: Final = 64
IN_SECTIONING: Final = 128
NESTED: Final = 256
"""What is above the other bits counts elements that have the text of others within them."""

MAX_NESTED: Final = 8
"""Buttons, fields or headings one in another, each with the text of all within: few bytes could say very much."""
