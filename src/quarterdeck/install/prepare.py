"""The preflight: reads the cluster, and returns the plan with everything that speaks against it.

It writes nothing: the server stores no access reviews.
"""

from collections.abc import Sequence

from quarterdeck.delivery.declaration import Declaration
from quarterdeck.install.conflicts import beside
from quarterdeck.install.monitoring import with_monitoring
from quarterdeck.install.observe import lacking_rights, live_objects, observe
from quarterdeck.install.plan import InstallationPlan, plan
from quarterdeck.install.preflight import InstallOptions
from quarterdeck.install.removal import own
from quarterdeck.install.rights import known_kinds, needed_rights, refused_without
from quarterdeck.kube import Client
from quarterdeck.kube.kinds import discover


async def prepare(
    client: Client, options: InstallOptions, operators: Sequence[Declaration], version: str
) -> InstallationPlan:
    """What to install of these operators; a KubeError if the cluster cannot be asked."""
    (applier,) = (one for one in operators if one.applies_payload)
    facts = await observe(client, applier)
    served = await discover(client)
    made = plan(facts, options, operators, version)
    if options.monitoring:
        made = with_monitoring(made, facts, served)
    kinds = known_kinds(made, served)
    lacking = await lacking_rights(client, needed_rights(made, kinds))
    if facts.unreadable or lacking:
        return refused_without(made, [*facts.unreadable, *lacking])
    live = await live_objects(client, made.objects, kinds)
    return beside(made, live, own(operators))
