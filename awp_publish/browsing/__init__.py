"""A browsing session over the site's own pages, as the Agent Web Protocol describes it, without any I/O.

Methods that need the network are generators: they yield a `Fetch` and are sent a `Fetched`. The caller that drives them
owns the clock, the time limits and the connection to the site.
"""
