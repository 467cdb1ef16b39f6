"""`python -m ragtide.sinks.clickhouse.embedded DIRECTORY PORT`: serve DIRECTORY until SIGTERM. Port 0: a free one."""

import argparse
import logging
import sys
from pathlib import Path

from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.embedded.confinement import begin_without_secrets
from ragtide.sinks.clickhouse.embedded.server import serve


def main() -> int:
    """Serve; return 0 after SIGTERM or SIGINT, 2 if something must change, with one line on stderr."""
    parser = argparse.ArgumentParser(prog="python -m ragtide.sinks.clickhouse.embedded", description=__doc__)
    parser.add_argument("directory", type=Path, help="data directory; holds the key and the port too")
    parser.add_argument("port", type=int, help="port on 127.0.0.1; 0 picks a free one")
    parser.add_argument("--with-parent", action="store_true", help="stop when stdin is closed")
    arguments = parser.parse_args()
    begin_without_secrets()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        serve(arguments.directory, arguments.port, with_parent=arguments.with_parent)
    except ConfigError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
