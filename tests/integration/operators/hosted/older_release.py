"""The program of a release that does not know `--config`: this one, without that option."""

import sys

from quarterdeck.cli.main import main

if any(argument.startswith("--config") for argument in sys.argv):
    sys.exit("Error: No such option: --config")
main()
