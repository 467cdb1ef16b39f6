"""The command `ragtide`, or `python -m ragtide.stream`: handles SIGTERM before any import that takes time."""

from ragtide.stream.sigterm import exit_at_sigterm


def main() -> None:
    """Run the command line and exit."""
    exit_at_sigterm()
    from ragtide.stream.cli import main as command

    command()


if __name__ == "__main__":
    main()
