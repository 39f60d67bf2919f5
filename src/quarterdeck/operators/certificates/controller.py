"""The controller of the certificate approver: read a request, judge it, approve it or leave it.

`judge` decides. The approval carries the uid and the resource version of the request that was
judged, so that the server refuses it if the request is another one by then. A request that is not
approved stays as it is, for a person, and an event on it says which rule is not met.
"""

from quarterdeck.api.meta import Key
from quarterdeck.api.times import format_time
from quarterdeck.controller import DONE, Controller, Manager, Result, Watch
from quarterdeck.kube import NotFound
from quarterdeck.kube.client_certificate import SIGNING_REQUESTS
from quarterdeck.log import get_logger
from quarterdeck.operators.certificates.judge import judge
from quarterdeck.operators.certificates.settings import Settings

log = get_logger("certificates")


def setup(manager: Manager, settings: Settings) -> None:
    """Add the controller of CertificateSigningRequests."""
    requests = manager.objects(SIGNING_REQUESTS)
    manager.declare(SIGNING_REQUESTS, "patch", subresource="approval")

    async def reconcile(key: Key) -> Result:
        found = requests.get(key)
        if found is None:
            return DONE
        judgement = judge(found, settings.users, settings.longest_certificate)
        if judgement.action == "ignore":
            return DONE
        user = found["spec"].get("username")
        if judgement.action == "leave":
            note = (
                f"Not approved as a renewal: {judgement.why}. Decide yourself: "
                f"kubectl certificate approve {key.name}, or deny"
            )
            manager.events.event(
                found, "Warning", "NotApproved", note, action="Approve", once="left"
            )
            log.warning("request left for a person", request=key.name, why=judgement.why)
            return DONE
        metadata, status = found["metadata"], found.get("status") or {}
        approval = {
            "type": "Approved",
            "status": "True",
            "reason": "RenewalByItsUser",
            "message": f"{user} renews its own client certificate.",
            "lastUpdateTime": format_time(manager.now()),
        }
        patch = {
            "metadata": {name: metadata[name] for name in ("uid", "resourceVersion")},
            "status": {"conditions": [*(status.get("conditions") or ()), approval]},
        }
        try:
            await manager.client.patch(SIGNING_REQUESTS, key.name, patch, subresource="approval")
        except NotFound:
            return DONE
        note = f"{user} renews its own client certificate."
        manager.events.event(found, "Normal", "Approved", note, action="Approve", once="approved")
        log.info("renewal approved", request=key.name, user=user)
        return DONE

    manager.add(Controller("certificatesigningrequest", reconcile, [Watch(requests)]))
