"""From HTML to what an agent reads: a tree, the Semantic Object Model of the page, and Markdown. Pure: no I/O.

Needs the extra `pages`.
"""
