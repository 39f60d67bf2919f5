"""An etcd without space: it raises the alarm NOSPACE, answers reads and refuses writes."""

import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from quarterdeck.localcluster import ControlPlane


@contextmanager
def no_space(plane: ControlPlane) -> Iterator[None]:
    """While this lasts, etcd has the alarm, as if its quota was exceeded."""
    members = _asked(plane, "/v3/cluster/member/list", {})["members"]
    alarm = {"memberID": members[0]["ID"], "alarm": "NOSPACE"}
    _asked(plane, "/v3/maintenance/alarm", alarm | {"action": "ACTIVATE"})
    try:
        yield
    finally:
        _asked(plane, "/v3/maintenance/alarm", alarm | {"action": "DEACTIVATE"})


def _asked(plane: ControlPlane, path: str, body: dict[str, Any]) -> Any:
    """The answer of etcd to a request, by its JSON interface."""
    setup = plane.setup
    context = ssl.create_default_context(cafile=str(setup.certificate("etcd-ca")))
    context.load_cert_chain(setup.certificate("etcd-client"), setup.key("etcd-client"))
    where = urlsplit(setup.etcd_url)
    assert where.hostname
    connection = http.client.HTTPSConnection(where.hostname, where.port, context=context)
    try:
        connection.request("POST", path, json.dumps(body))
        answer = connection.getresponse()
        text = answer.read().decode()
        assert answer.status == 200, text
        return json.loads(text)
    finally:
        connection.close()
