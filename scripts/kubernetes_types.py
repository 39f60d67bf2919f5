"""Writes the schemas of Kubernetes' own types that fields of our kinds have.

    scripts/kubernetes_types.py CORE APPS RBAC

The arguments are the API server's OpenAPI documents of `api/v1`, `apis/apps/v1` and
`apis/rbac.authorization.k8s.io/v1`, as `kubectl get --raw /openapi/v3/api/v1` prints them. The
result is `src/quarterdeck/api/kubernetes_types.json`; a test compares it with the API server.
"""

import json
import sys
from pathlib import Path

from quarterdeck.api.kubernetes_types import ROOTS, TYPES, collected


def main(paths: list[str]) -> None:
    """Write the file."""
    documents = [json.loads(Path(path).read_bytes()) for path in paths]
    TYPES.write_text(json.dumps(collected(documents, ROOTS), indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
