"""The command `awp-publish`: check documents, show, try and export what an application publishes, run its jobs."""

import argparse
import sys
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from awp_publish.cli.console import Console, warn
from awp_publish.client import doors
from awp_publish.http.running import StartFailed
from awp_publish.http.talk import TalkFailed
from awp_publish.plugin import Plugin, installed, known_protocols
from awp_publish.problems import DeclarationError
from awp_publish.schema.handlers import accepts

FAILURES: Final = (OSError, DeclarationError, ImportError, AttributeError, StartFailed, TalkFailed)
"""Errors with which a command fails."""

PATHS: Final = tuple(document.path for protocol in known_protocols() for document in protocol.documents)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns 0 if nothing is wrong, 1 if something was found, 2 if the command failed."""
    sent = [*(sys.argv[1:] if arguments is None else arguments)]
    console = Console(as_json="--json" in sent)
    try:
        parser = make_parser(sent)
        options, rest = parser.parse_known_args(sent)
        if options.version:
            from awp_publish.model import __version__

            console.say(f"awp-publish {__version__}")
            console.json({"version": __version__})
            return 0
        if options.command is None:
            parser.error("no command is given")
        if unknown := take_rest(options, rest):
            parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        return run(console, options)
    except BrokenPipeError:  # the reader has closed the pipe: awp-publish show ... | head
        sys.stderr.close()
        return 0
    except FAILURES as error:
        wrong = describe_failure(error)
        warn(wrong)
        console.json({"error": wrong})
        return 2
    except KeyboardInterrupt:
        return 130


def take_rest(options: argparse.Namespace, rest: list[str]) -> list[str]:
    """Assign names after an option, which argparse does not: `init --force django x.py`. Returns the unknown ones."""
    name = {"call": "given", "check": "target", "init": "file", "show": "path"}.get(options.command)
    if rest and options.command == "init" and options.framework is None and not rest[0].startswith("-"):
        options.framework, *rest = rest
    if (of_plugin := getattr(options, "of_plugin", None)) is not None:
        name = of_plugin.names
    if rest and name and not any(word.startswith("-") for word in rest):
        if isinstance(before := getattr(options, name), list):
            setattr(options, name, before + rest)
            return []
        if before is None:
            setattr(options, name, rest[0])
            return rest[1:]
    return rest


def run(console: Console, options: argparse.Namespace) -> int:
    """Run the parsed command. Returns 1 if something was found. Raises FAILURES.

    What the application raises is a DeclarationError with its place; a traceback through this package helps nobody.
    """
    try:
        return _run(console, options)
    except (*FAILURES, BrokenPipeError):
        raise
    except Exception as error:
        from awp_publish.cli.application import described

        last = traceback.extract_tb(error.__traceback__)[-1:]
        if not last or Path(last[0].filename).is_relative_to(Path(__file__).parents[1]):
            raise
        target = getattr(options, "target", None)
        subject = target if isinstance(target, str) else options.command
        raise DeclarationError(subject, f"has failed: {described(error)}.") from error


def _run(console: Console, options: argparse.Namespace) -> int:
    # Imported late so that `--help` and `--version` are quick.
    from awp_publish.cli import beginning, call, check, init, pages, show, synthesize

    if hasattr(options, "of_plugin"):
        return run_of_plugin(console, options)
    match options.command:
        case "check":
            return check.check(console, options)
        case "show":
            return show.show(console, options)
        case "call":
            return call.call(console, options)
        case "export":
            return show.export(console, options)
        case "som":
            return pages.show_som(console, options)
        case "markdown":
            return pages.show_markdown(console, options)
        case "synthesize":
            return synthesize.synthesize(console, options)
        case "init" if options.framework not in init.FILES:
            return beginning.begin(console, options)
        case "init":
            return init.init(console, options)
    return 0


def describe_failure(error: Exception) -> str:
    """Return one line about one of FAILURES."""
    if isinstance(error, OSError) and error.strerror is not None and error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    if isinstance(error, StartFailed):  # frameworks send the whole traceback
        from awp_publish.cli.application import extra_of

        lines = [line for line in str(error).splitlines() if line.strip()] or ["its lifespan has failed"]
        extra = extra_of(error.__cause__) if isinstance(error.__cause__, ImportError) else None
        remedy = f'. Run pip install "awp-publish[{extra}]".' if extra is not None else ""
        return f"The application does not start: {lines[-1].strip()}{remedy}" if "Traceback" in lines[0] else str(error)
    return str(error)


def make_parser(arguments: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Make the parser of the command line. It knows the commands of an application's own plug-ins, if it is named."""
    parser = argparse.ArgumentParser(prog="awp-publish", description=__doc__)
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    commands = parser.add_subparsers(dest="command")
    add_commands(commands)
    words = [argument for argument in arguments if not argument.startswith("-")]
    if words and words[0] not in commands.choices:
        for target in words[1:]:
            add_commands_of(commands, target)
    return parser


def add_commands_of(commands: "argparse._SubParsersAction[Any]", target: str) -> None:
    """Add the commands of the plug-ins that the application `module:app` has."""
    from awp_publish.cli.application import is_application, load, site_of

    site = site_of(load(target)) if is_application(target) else None
    if site is not None:
        add_commands_of_plugins(commands, [setup.plugin for setup in site.plugins.values()])


def add_commands_of_plugins(
    commands: "argparse._SubParsersAction[Any]", plugins: Iterable[Plugin], project: str | None = None
) -> None:
    """Add the commands of plug-ins. With `project`, a module:app, all of them are about that application."""
    of_plugins = [(name, plugin.name, command) for plugin in plugins for name, command in plugin.commands.items()]
    for name, plugin_name, command in sorted(of_plugins, key=lambda named: named[:2]):
        owner = f'the plug-in "{plugin_name}"'
        if (other := commands.choices.get(name)) is None:
            parser = commands.add_parser(name, parents=[_of_application(project)], help=command.help)
            try:
                command.arguments(parser)
            except Exception as error:
                from awp_publish.cli.application import described

                raise DeclarationError(owner, f'the arguments of "{name}" have failed: {described(error)}.') from error
            parser.set_defaults(of_plugin=command, owner=owner)
        elif other.get_default("owner") != owner:
            warn(f'The command "{name}" of {owner} is left out: there is another command of this name.')


def run_of_plugin(console: Console, options: argparse.Namespace) -> int:
    """Run a plug-in's command. Raises FAILURES."""
    from awp_publish.cli.application import Application

    command, subject = options.of_plugin, f'the command "{options.command}" of {options.owner}'
    application = Application(options.target)
    if not accepts(command.run, 3):
        raise DeclarationError(subject, "takes other arguments than the console, the application and the options.")
    status: object = command.run(console, application, options)
    if not isinstance(status, int):
        remedy = "Return 0 if nothing is wrong, 1 if something was found."
        raise DeclarationError(subject, f"returned {status!r}, which is not a status.", remedy)
    return status


def _of_all() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False)
    # SUPPRESS keeps the value of a --json before the command.
    parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON, for programs")
    return parser


def _of_application(project: str | None, target: str = "module:app") -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, parents=[_of_all()])
    if project is None:
        parser.add_argument("target", help=target)
    else:
        parser.set_defaults(target=project)
    return parser


def add_commands(commands: "argparse._SubParsersAction[Any]", project: str | None = None) -> None:
    """Add every command, those of installed plug-ins included.

    With `project`, a module:app, all of them are about that application.
    """
    of_all, of_app = _of_all(), _of_application(project)
    check = commands.add_parser("check", parents=[of_all], help="check documents against their specifications")
    check.add_argument(
        "target",
        nargs="*",
        default=[] if project is None else [project],
        help='a file, an http(s) address, "-" for standard input, or module:app',
    )
    kinds = "the kind of document, where its members do not show it: awas, agent-json, woa, ..."
    check.add_argument("--kind", help=kinds)
    check.add_argument("--lenient", action="store_true", help="also accept maps that are older than actions.json V1")
    check.add_argument(
        "--pages", action="store_true", help="render the pages of module:app and compare them with its map"
    )
    check.add_argument("--browser", action="store_true", help="render these pages in Chromium")
    check.add_argument(
        "--explain",
        nargs="?",
        const="",
        metavar="ID",
        help="print what a check demands, and by which specification; 'drift', 'model': the rules of --pages and "
        "--as-model; 'codes', 'limits': how tools of a map fail, and what bounds them",
    )
    check.add_argument("--as-model", action="store_true", help="judge descriptions and names as a model reads them")
    show = commands.add_parser("show", parents=[of_app], help="print what an application publishes, or one document")
    show.add_argument("path", nargs="?", help="the document's path; without it, documents and actions are listed")
    show.add_argument("--included", action="store_true", help="what site.include() took, what it left out, and why")
    show.add_argument("--tokens", action="store_true", help="what each document costs its reader")
    of_site = _of_application(project, "module:app, or the http(s) address of a site")
    call = commands.add_parser("call", parents=[of_site], help="call an action as agents do")
    call.add_argument("action", help="the action's id")
    call.add_argument("given", nargs="*", default=[], metavar="name=value", help="its inputs, as text or JSON")
    call.add_argument("--input", default="{}", metavar="JSON", help='its inputs as one object, "-" for standard input')
    call.add_argument("--door", help=f"through which door: {', '.join(doors())} (default: the first that it has)")
    call.add_argument("--token", help="a bearer token to send")
    call.add_argument("--header", action="append", default=[], metavar="'Name: value'", help="a header to send")
    call.add_argument("--key", help="an idempotency key")
    call.add_argument("--yes", action="store_true", help="confirm calls that a person has to confirm")
    export = commands.add_parser("export", parents=[of_app], help="write the documents as files, with their headers")
    export.add_argument("folder", type=Path, help="the folder; its file _headers is for the CDN")
    for name, words in (("som", "as SOM"), ("markdown", "as Markdown")):
        page = commands.add_parser(name, parents=[of_all], help=f"print a page {words}")
        page.add_argument("target", help='a file of HTML, an http(s) address, or "-" for standard input')
        page.add_argument("--url", help="the address at which the page is served, to resolve the links of a file")
        if name == "som":
            sizes = ("tight", "default", "full")
            page.add_argument("--budget", choices=sizes, default="default", help="how much of the page is included")
    synthesize = commands.add_parser(
        "synthesize", parents=[of_all], help="write agent.json and ai-actions.json for a site that has neither"
    )
    synthesize.add_argument("url", help="the http(s) address to start from")
    synthesize.add_argument("--out", type=Path, metavar="DIR", help="write the files below this folder")
    synthesize.add_argument("--max-pages", type=int, default=20, metavar="N", help="pages to read (default: 20)")
    synthesize.add_argument(
        "--allow-private", action="store_true", help="also read addresses of this machine and its network"
    )
    synthesize.add_argument("--anyway", action="store_true", help="even where the site has documents of its own")
    init = commands.add_parser("init", parents=[of_all], help="write a first site into a project, or a new file")
    if project is None:
        init.add_argument(
            "framework",
            nargs="?",
            metavar="project",
            help="a folder, a file or the module:app of a project (default: this folder); "
            "fastapi, starlette or django for a new file",
        )
        init.add_argument("--dry-run", action="store_true", help="show what would be written into a project")
    else:
        init.set_defaults(framework="django")
    init.add_argument("file", nargs="?", help='its name; "-" prints it')
    init.add_argument("--force", action="store_true", help="replace an existing file")
    add_commands_of_plugins(commands, installed().values(), project)
