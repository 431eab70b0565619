"""What holds for everything within an element, while a page is walked: bits of one number."""

from typing import Final

COVERED: Final = 1
"""Within an element that has the text: only what can be operated, headings and images are elements of their own."""
DISABLED: Final = 2
INERT: Final = 4
IN_FORM: Final = 8
IN_LANDMARK: Final = 16
IN_LINK: Final = 32
IN_LAYOUT: Final = 64
