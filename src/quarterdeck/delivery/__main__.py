"""Writes the manifests of distributions' operators: `python -m quarterdeck.delivery DIRECTORY`.

The operators are Quarterdeck's own, or those of the distributions that follow: with `quarterdeck`
among them the payload is that of a whole release.
"""

import sys
from pathlib import Path

from quarterdeck.delivery.deliverable import trouble
from quarterdeck.delivery.files import files, write
from quarterdeck.delivery.omissions import omissions
from quarterdeck.delivery.registry import OWN, installed

USAGE = """\
usage: python -m quarterdeck.delivery DIRECTORY [DISTRIBUTION...]

Write the manifests of the DISTRIBUTIONs' operators into DIRECTORY, remove
generated files there that are no longer needed, and print the names of the
files that changed. Without DISTRIBUTION, write Quarterdeck's own manifests.
"""


def main(arguments: list[str]) -> int:
    """The exit code: 0, 1 if nothing can be written, 2 for wrong arguments."""
    if {"-h", "--help"} & set(arguments):
        sys.stdout.write(USAGE)
        return 0
    if not arguments or any(argument.startswith("-") for argument in arguments):
        sys.stderr.write(USAGE)
        return 2
    directory, distributions = Path(arguments[0]), arguments[1:] or [OWN]
    registry = installed()
    sys.stderr.writelines(f"{left_out}\n" for left_out in registry.left_out)
    found = {distribution: registry.of(distribution) for distribution in distributions}
    if missing := [distribution for distribution, its in found.items() if not its]:
        sys.stderr.write(f"the distribution {missing[0]} has no operators: is it installed?\n")
        return 1
    operators = [declared for its in found.values() for declared in its]
    for declared in operators:
        if why := trouble(declared):
            sys.stderr.write(
                f"nothing is written, because of the operator {declared.name}: {why}\n"
            )
            return 1
        sys.stderr.writelines(f"{omission}\n" for omission in omissions(declared))
    sys.stdout.writelines(f"{name}\n" for name in write(directory, files(operators)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
