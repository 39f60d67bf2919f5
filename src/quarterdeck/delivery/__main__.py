"""Writes the manifests of a distribution's operators: `python -m quarterdeck.delivery DIRECTORY`.

The operators are Quarterdeck's own, or those of a distribution named as the second argument.
"""

import sys
from pathlib import Path

from quarterdeck.delivery.deliverable import trouble
from quarterdeck.delivery.files import files, write
from quarterdeck.delivery.manifests import foreign_namespaces, missing_namespace
from quarterdeck.delivery.registry import OWN, installed


def main(arguments: list[str]) -> int:
    """The exit code: 0, 1 if nothing can be written, 2 for wrong arguments."""
    if len(arguments) not in (1, 2):
        sys.stderr.write("usage: python -m quarterdeck.delivery DIRECTORY [DISTRIBUTION]\n")
        return 2
    directory, distribution = Path(arguments[0]), (arguments[1:] or [OWN])[0]
    registry = installed()
    sys.stderr.writelines(f"{left_out}\n" for left_out in registry.left_out)
    operators = registry.of(distribution)
    if not operators:
        sys.stderr.write(f"the distribution {distribution} has no operators: is it installed?\n")
        return 1
    for declared in operators:
        if why := trouble(declared):
            sys.stderr.write(
                f"nothing is written, because of the operator {declared.name}: {why}\n"
            )
            return 1
        for namespace in foreign_namespaces(declared):
            sys.stderr.write(missing_namespace(declared, namespace) + "\n")
    sys.stdout.writelines(f"{name}\n" for name in write(directory, files(operators)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
