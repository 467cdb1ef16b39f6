"""The command `ragtide`: each command's module is imported only when that command runs or tells its help."""

import errno
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from ragtide.stream.sigterm import restore_default

# name: (module with `command`, one line for `ragtide --help`)
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("ragtide.stream.cli.demo", "Watch it find an injected regression, with nothing else installed."),
    "worker": ("ragtide.stream.cli.worker", "Evaluate traces from Kafka, one process per lane."),
    "jobs": ("ragtide.stream.cli.jobs", "Close windows, evaluate rules, open and resolve problems."),
    "replay": ("ragtide.stream.cli.replay", "Evaluate a range of a topic, or a file, into a separate run."),
    "evaluate": ("ragtide.stream.cli.evaluate", "Evaluate a file of traces here, and print a summary of each metric."),
    "dead-letters": (
        "ragtide.stream.cli.dead_letters",
        "List, show, replay or drop records that could not be processed.",
    ),
    "runs": ("ragtide.stream.cli.runs", "List replays, show one, or delete one."),
    "compare": ("ragtide.stream.cli.compare", "Compare two runs, with the significance of each change."),
    "topics": ("ragtide.stream.cli.topics", "Show lag per lane and partition; create topics."),
    "problems": (
        "ragtide.stream.cli.problems",
        "List problems, show one, and acknowledge, mute or accept it.",
    ),
    "notify": (
        "ragtide.stream.cli.notify",
        "List undelivered notifications, preview those of a problem, test every target.",
    ),
    "trace": ("ragtide.stream.cli.trace", "Show one trace: texts, scores with evidence, problems that name it."),
    "insights": ("ragtide.stream.cli.insights", "Show findings that never page, with their confidence."),
    "calibrate": ("ragtide.stream.cli.calibrate", "Compare a metric with people's labels, and propose its threshold."),
    "labels": ("ragtide.stream.cli.labels", "Draw judged answers for people to label."),
    "byop": ("ragtide.stream.cli.byop", "Try prompts of your own on a file of traces before workers run them."),
    "judge": ("ragtide.stream.cli.judge", "Show how steadily judges score traces that never change."),
    "rules": ("ragtide.stream.cli.rules", "Backtest rules on stored windows before they go live."),
    "baseline": ("ragtide.stream.cli.baseline", "Learn, show or pin baselines of series."),
    "calendar": ("ragtide.stream.cli.calendar", "Show the times that change detection leaves out."),
    "evaluators": ("ragtide.stream.cli.evaluators", "List evaluators and whether they can run; create your own."),
    "models": ("ragtide.stream.cli.models", "List the models that evaluators use, or download them."),
    "dashboards": ("ragtide.stream.cli.dashboards", "Build or push the Grafana dashboards; write alert rules."),
    "view": ("ragtide.stream.cli.view", "Show the dashboards in a browser, without a Grafana."),
    "migrate": ("ragtide.stream.cli.migrate", "Create or update the tables in ClickHouse."),
    "check": ("ragtide.stream.cli.check", "Check every connection and print what to do."),
    "validate": ("ragtide.stream.cli.validate", "Validate traces of a file: what is refused, and what to write."),
    "explain-trace": (
        "ragtide.stream.cli.explain_trace",
        "Explain which trace OpenTelemetry spans become, field by field.",
    ),
    "config": ("ragtide.stream.cli.config", "Print the effective settings and the origin of each."),
    "local": ("ragtide.stream.cli.local", "Run a broker and ClickHouse locally, for development."),
}
# SIGTERM during the start ends these with status 0; all others it kills.
_EXIT_AT_SIGTERM = ("demo", "worker", "jobs", "replay", "check", "local", "view")
EXIT_ERROR = 2
EXIT_INTERRUPTED = 130
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # these name no file


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
        if not args or args[0] not in _EXIT_AT_SIGTERM:
            restore_default()
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
        """Run and exit: 0 well, 2 an expected error (one line on stderr), 130 Ctrl-C; a bug keeps its traceback.

        A file or folder that cannot be used is an expected error, whichever command met it.
        """
        from ragtide.evaluators.errors import RagtideError
        from ragtide.stream.telemetry.log_records import guard
        from ragtide.stream.terminal import say

        guard()

        try:
            status = super().main(args, prog_name or "ragtide", complete_var, standalone_mode=False, **extra)
        except click.ClickException as error:
            _show(error)
            sys.exit(EXIT_ERROR)
        except (click.Abort, KeyboardInterrupt):
            sys.exit(EXIT_INTERRUPTED)
        except RagtideError as error:
            first, *others = error.lines
            say(f"ragtide: {first}", *others, err=True)
            sys.exit(EXIT_ERROR)
        except OSError as error:
            if error.filename is None and error.errno not in _FULL:
                raise
            say(f"ragtide: {_describe_file_error(error)}", err=True)
            sys.exit(EXIT_ERROR)
        sys.exit(status if isinstance(status, int) else 0)


def _describe_file_error(error: OSError) -> str:
    """Say which file or folder could not be used, why, and what to do."""
    where = "a file" if error.filename is None else os.fsdecode(error.filename)
    doing = "free space there" if error.errno in _FULL else "check the path and the rights of this user"
    return f"{where} cannot be used: {error.strerror or type(error).__name__}; {doing}, or choose another path"


def _show(error: click.ClickException) -> None:
    """As click does, with what was typed escaped."""
    from ragtide.stream.terminal import say

    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is not None:
        say(
            *context.get_usage().split("\n"),
            f"Try '{context.command_path} {context.help_option_names[0]}' for help.",
            "",
            err=True,
        )
    say(f"Error: {error.format_message()}", err=True)


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="ragtide", prog_name="ragtide")
def main() -> None:
    """Watch RAG in production: traces from Kafka, evaluators on every record, problems in Grafana.

    \b
    First steps:
      ragtide demo                      watch the whole pipeline, with nothing else installed
      ragtide check                     check every connection of ragtide.toml
      ragtide migrate                   create the tables
      ragtide worker --lane fast,model  evaluate traces
      ragtide jobs                      find problems

    Settings come from ./ragtide.toml (or --config FILE, or RAGTIDE_CONFIG) and RAGTIDE_ variables on top of it.
    """
