"""`python -m stream.cli`: the command, where the script is not on the path."""

from stream.cli import main

main()
