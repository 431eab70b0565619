"""A browsing session over the site's own pages, as the Agent Web Protocol describes it, without any I/O.

What needs the network is a generator: it yields a `Fetch` and is sent a `Fetched`. Who drives it owns the clock, the
time limits and the way to the site.
"""
