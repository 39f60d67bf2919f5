"""Explains IngressControllers, of a file or of a cluster: reads, asks HAProxy, and judges."""

from quarterdeck.api.meta import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    INGRESS_CLASSES,
    SERVICES,
)
from quarterdeck.api.operator_v1 import INGRESS_CONTROLLERS, IngressController
from quarterdeck.haproxy.access_log import AccessLog, access_log
from quarterdeck.haproxy.errors import CheckError, InvalidVariableError
from quarterdeck.kube import Client
from quarterdeck.operators.ingress import names
from quarterdeck.operators.ingress.admission import Admission, admission, variables_fit
from quarterdeck.operators.ingress.explain import (
    IngressExplanation,
    LiveObjects,
    explanation,
    live_settings,
)
from quarterdeck.operators.ingress.log_format import checked
from quarterdeck.operators.ingress.router_pod import logging_additions, router_variables
from quarterdeck.operators.ingress.sample_line import sample_line
from quarterdeck.operators.ingress.settings import Settings


async def explain(
    controller: IngressController, live: LiveObjects | None = None, program: str = "haproxy"
) -> IngressExplanation:
    """The explanation of an IngressController, beside what runs in a cluster if that is given."""
    settings = live_settings(Settings(), live) if live else Settings()
    verdict, log, line = admission(controller), None, None
    if verdict.admitted:
        verdict, log = await _checked(controller, settings, program)
    if verdict.admitted and log is not None:
        line = await sample_line(log, program)
    return explanation(controller, settings, verdict, log, line=line, live=live)


async def live_controller(client: Client, namespace: str, name: str) -> IngressController:
    """The IngressController of a cluster; raises `NotFound`."""
    return await client.get(INGRESS_CONTROLLERS, name, namespace)


async def live_objects(client: Client, name: str) -> LiveObjects:
    """The objects of an IngressController in a cluster."""
    services = [
        await client.find(SERVICES, key.name, key.namespace)
        for key in names.services(name).values()
    ]
    deployment = names.deployment(name)
    maps = await client.list(CONFIG_MAPS, names.NAMESPACE, label_selector=f"{names.OWNER}={name}")
    return LiveObjects(
        deployment=await client.find(DEPLOYMENTS, deployment.name, deployment.namespace),
        services=tuple(one for one in services if one is not None),
        config_maps=tuple(maps.items),
        ingress_class=await client.find(INGRESS_CLASSES, names.ingress_class(name).name),
    )


async def _checked(
    controller: IngressController, settings: Settings, program: str
) -> tuple[Admission, AccessLog | None]:
    """HAProxy's verdict, and the access log; without HAProxy the verdict says so."""
    added = logging_additions(controller, settings)
    variables = added.environment
    verdict = variables_fit(router_variables(controller, added, settings))
    if not verdict.admitted:
        return verdict, None
    try:
        log = access_log(variables)
        return await checked(variables, program), log
    except InvalidVariableError:
        return await checked(variables, program), None
    except CheckError as error:
        return Admission(True, "LogFormatNotChecked", str(error)), log
