"""ClusterOperators are there before their operators, so that what has not come up yet is seen."""

import pytest
from tests.integration.operators.cluster_version.sync.engine import Engine, eventually, manifest
from tests.objects import config_map, foreign_container, job, pod

from quarterdeck.api.meta import CONFIG_MAPS, Object, foreign
from quarterdeck.kube import Client, NotFound
from quarterdeck.operators.cluster_version.sync.plan import FIELD_MANAGER
from quarterdeck.payload.graph import Mode
from quarterdeck.payload.model import Manifest

OPERATORS = foreign(
    "config.openshift.io/v1", "ClusterOperator", "clusteroperators", namespaced=False
)


def operator(name: str, file: str, annotations: dict[str, str] | None = None) -> Manifest:
    home = {"group": "", "resource": "namespaces", "name": "home"}
    return manifest(
        {
            "apiVersion": OPERATORS.api_version,
            "kind": OPERATORS.kind,
            "metadata": {"name": name, "annotations": annotations or {}},
            "status": {
                "versions": [{"name": "operator", "version": "1.1.0"}],
                "relatedObjects": [home],
            },
        },
        file,
    )


async def there(admin: Client, name: str) -> Object | None:
    try:
        return await admin.get(OPERATORS, name)
    except NotFound:
        return None


@pytest.mark.parametrize("mode", [Mode.INITIALIZING, Mode.UPDATING])
@pytest.mark.usefixtures("tidy")
async def test_cluster_operators_are_made_before_their_turn_with_their_related_objects(
    engine: Engine, admin: Client, namespace: str, mode: Mode
) -> None:
    """What is before them never gets done; one that is to be deleted is not made."""
    stopped = job("x", pod("x", foreign_container()), namespace=namespace, suspend=True)
    name, gone = f"co-{namespace[-6:]}", f"gone-{namespace[-6:]}"
    payload = [
        manifest(stopped, "0000_10_a_01.yaml"),
        manifest(config_map(namespace), "0000_20_b_01.yaml"),
        operator(name, "0000_20_b_02.yaml"),
        operator(gone, "0000_20_b_03.yaml", {"release.openshift.io/delete": "true"}),
    ]
    async with engine.running(*payload, mode=mode):

        async def is_seen() -> bool:
            found = await there(admin, name)
            return bool(found and found.get("status", {}).get("relatedObjects"))

        await eventually(is_seen)
        found = await admin.get(OPERATORS, name)
        assert found["status"] == {
            "relatedObjects": [{"group": "", "resource": "namespaces", "name": "home"}]
        }
        assert await there(admin, gone) is None
        with pytest.raises(NotFound):
            await admin.get(CONFIG_MAPS, "x", namespace)
    assert engine.writes().count(f"create clusteroperators {name}") == 1


@pytest.mark.usefixtures("tidy")
async def test_a_cluster_operator_that_is_there_is_left_to_its_operator(
    engine: Engine, admin: Client, namespace: str
) -> None:
    name = f"co-{namespace[-6:]}"
    await admin.create(
        OPERATORS,
        {
            "apiVersion": OPERATORS.api_version,
            "kind": OPERATORS.kind,
            "metadata": {"name": name},
            "spec": {},
        },
    )
    async with engine.running(operator(name, "0000_20_b_02.yaml")):
        await engine.until(lambda report: report.waiting)
    found = await admin.get(OPERATORS, name)
    assert "relatedObjects" not in found.get("status", {})


@pytest.mark.usefixtures("tidy")
async def test_who_was_stopped_after_the_creation_writes_the_related_objects_later(
    engine: Engine, admin: Client, namespace: str
) -> None:
    made = operator(f"co-{namespace[-6:]}", "0000_20_b_02.yaml")
    bare = {**made.object, "spec": {}}
    del bare["status"]
    await admin.create(OPERATORS, bare, field_manager=FIELD_MANAGER)
    async with engine.running(made, mode=Mode.INITIALIZING):

        async def is_seen() -> bool:
            found = await there(admin, made.identity.name)
            return bool(found and found.get("status", {}).get("relatedObjects"))

        await eventually(is_seen)
        await engine.until(lambda report: report.waiting)
    written = [one for one in engine.writes() if "clusteroperators" in one]
    assert len(written) == 1, written


@pytest.mark.usefixtures("tidy")
async def test_each_is_created_by_one_request_whether_in_its_turn_or_before(
    engine: Engine, namespace: str
) -> None:
    """All have their turn at once, while they are created one after the other."""
    payload = [
        operator(f"co-{number}-{namespace[-6:]}", f"0000_20_c{number}_01.yaml")
        for number in range(30)
    ]
    async with engine.running(*payload, mode=Mode.INITIALIZING):
        await engine.until(lambda report: len(report.waiting) == len(payload))
    asked = [one for one in engine.requests() if one.verb == "create"]
    assert [one.code for one in asked if one.resource == "clusteroperators"] == [201] * 30
