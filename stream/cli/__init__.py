"""The command `ragwatch`: each command's module is imported only when that command runs or tells its help."""

import importlib
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

# name: (module with `command`, one line for `ragwatch --help`)
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("stream.cli.demo", "See it find an injected regression, with nothing else installed."),
    "worker": ("stream.cli.worker", "Evaluate traces from Kafka, one process per lane."),
    "jobs": ("stream.cli.jobs", "Close windows, judge rules, open and resolve problems."),
    "replay": ("stream.cli.replay", "Evaluate a range of a topic, or a file, into a run of its own."),
    "dead-letters": ("stream.cli.dead_letters", "List, show, replay or drop records that could not be used."),
    "compare": ("stream.cli.compare", "What changed from one run to another, and how sure that is."),
    "topics": ("stream.cli.topics", "How far each lane is in each partition, and who works on it."),
    "problems": ("stream.cli.problems", "List problems, show one, and say that it is taken, muted or accepted."),
    "insights": ("stream.cli.insights", "What is worth knowing of the last periods, and how sure it is."),
    "rules": ("stream.cli.rules", "Try rules on past windows before they go live."),
    "baseline": ("stream.cli.baseline", "What is usual: learn it, show it, or pin a reference."),
    "evaluators": ("stream.cli.evaluators", "Every evaluator, and whether it can run; begin one of your own."),
    "models": ("stream.cli.models", "List the models that evaluators ask, or fetch them."),
    "dashboards": ("stream.cli.dashboards", "Build the Grafana dashboards, or push them."),
    "migrate": ("stream.cli.migrate", "Create or update the tables in ClickHouse."),
    "check": ("stream.cli.check", "Try every connection and say what is wrong and what to do."),
    "config": ("stream.cli.config", "Print the effective settings and where each came from."),
    "local": ("stream.cli.local", "Run a broker and ClickHouse here, for development."),
}
EXIT_ERROR = 2
EXIT_INTERRUPTED = 130


class LazyGroup(click.Group):
    """Lists its commands without importing them, and ends every expected error as one clear line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the table: what a newcomer needs first."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does; what is no Unicode is refused before it is stored, since nothing could print it again."""
        for arg in args:
            try:
                arg.encode()
            except UnicodeEncodeError:
                raise click.UsageError(f"{arg!a} is not UTF-8") from None
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, and an unknown name gets the nearest one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            close = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(COMMANDS)}"
            ctx.fail(f"no such command: {args[0]}; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table above."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, short) for name, (_, short) in COMMANDS.items()])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> NoReturn:
        """Run and exit: 0 well, 2 an expected error (one line on stderr), 130 Ctrl-C; a bug keeps its traceback."""
        from evaluators.errors import RagwatchError

        try:
            status = super().main(args, prog_name or "ragwatch", complete_var, standalone_mode=False, **extra)
        except click.ClickException as error:
            error.show()
            sys.exit(EXIT_ERROR)
        except (click.Abort, KeyboardInterrupt):
            sys.exit(EXIT_INTERRUPTED)
        except RagwatchError as error:
            click.echo(f"ragwatch: {error}", err=True)
            sys.exit(EXIT_ERROR)
        sys.exit(status if isinstance(status, int) else 0)


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="ragwatch", prog_name="ragwatch")
def main() -> None:
    """Watches RAG in production: traces from Kafka, evaluators on every record, problems in Grafana.

    \b
    First steps:
      ragwatch demo                      see the whole pipeline at work, with nothing else installed
      ragwatch check                     try every connection of ragwatch.toml
      ragwatch migrate                   create the tables
      ragwatch worker --lane fast,model  evaluate
      ragwatch jobs                      find problems

    Settings come from ./ragwatch.toml (or --config FILE, or RAGWATCH_CONFIG) and RAGWATCH_ variables over it.
    """
