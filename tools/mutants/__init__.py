"""Mutants: how many small mistakes in the package the tests notice.

Neither mutmut nor cosmic-ray fits. mutmut 3 writes every function beside its mutants and calls them through a
trampoline: it leaves out what has a decorator and what runs when a module is imported (tables, options, schemas), and
every process that tests start would import 100,000 mutants. cosmic-ray runs one command for each mutant and does not
know which tests execute it. So mutants are made here from the syntax tree, coverage.py's contexts name the tests that
execute one, and these run in a process forked from one that has the libraries imported.
"""
