"""Write the manifests of a distribution's operators: `python -m quarterdeck.delivery DIRECTORY`.

Quarterdeck's own operators, or those of the distribution that is named after the directory.
"""

import sys
from pathlib import Path

from quarterdeck.delivery.files import files, write
from quarterdeck.delivery.manifests import foreign_namespaces, missing_namespace
from quarterdeck.delivery.registry import OWN, installed
from quarterdeck.delivery.soundness import trouble


def main(arguments: list[str]) -> int:
    """The exit code: 0, 1 when there is nothing to write, or 2 for a wrong call."""
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
