"""Catalogs: what is accepted, what is refused with file and entry, and the next version."""

import base64
import gzip
import json
import os
import shutil
from pathlib import Path

import pytest
from tests.places import DOCS, FIXTURES
from tests.unit.operators.subscriptions.catalogs import (
    bundle,
    channel,
    csv,
    encoded,
    entry,
    loaded,
    package,
)

from quarterdeck.api.meta import Object
from quarterdeck.operators.subscriptions.catalog.bundles import (
    BundleDirectory,
    bundle_directories,
    catalog_entries,
    read_bundle,
)
from quarterdeck.operators.subscriptions.catalog.channels import next_entry
from quarterdeck.operators.subscriptions.catalog.definitions import (
    Unconvertible,
    convert_definition,
)
from quarterdeck.operators.subscriptions.catalog.files import (
    MAX_FILE,
    config_map_files,
    directory_files,
)
from quarterdeck.operators.subscriptions.catalog.installable import NotInstallable, installable
from quarterdeck.operators.subscriptions.catalog.load import MAX_REQUIRED, load
from quarterdeck.operators.subscriptions.catalog.model import CatalogFinding
from quarterdeck.versions import parse_version

THREE = [bundle("a", "1.0.0"), bundle("b", "1.1.0"), bundle("c", "2.0.0")]


def refusals(*entries: Object) -> list[str]:
    return [str(finding) for finding in loaded(*entries).errors]


def test_a_catalog_that_is_right_has_no_findings() -> None:
    chain = channel(entry("a"), entry("b", "a"), entry("c", "b"))
    found = loaded(package(), chain, *THREE)
    assert found.findings == ()
    assert found.catalog.bundle_count == 3


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        pytest.param(
            [package(channel="x"), channel(entry("a"))],
            "catalog.json: olm.package p: the default channel 'x' does not exist",
            id="default channel",
        ),
        pytest.param(
            [package(), channel(entry("a"), entry("b"), entry("c", "b"))],
            "olm.channel c: has several heads: a, c",
            id="two heads",
        ),
        pytest.param(
            [package(), channel(entry("a", "b"), entry("b", "a"))],
            "every entry is replaced by another one",
            id="all in a cycle",
        ),
        pytest.param(
            [package(), channel(entry("a", "b"), entry("b", "a"), entry("c", "b"))],
            "replace each other in a cycle",
            id="a cycle below the head",
        ),
        pytest.param(
            [
                package(),
                channel(entry("a"), entry("b"), entry("c", "b", skips=["x"]), entry("d", "a")),
            ],
            "the entry d has no bundle",
            id="no bundle",
        ),
        pytest.param(
            [package(), channel(entry("a", skips=["b", "c"]), entry("b", "c"), entry("c", "b"))],
            "",
            id="skipped entries need not be in the chain",
        ),
        pytest.param([package(), channel()], "has no entries", id="empty channel"),
        pytest.param(
            [package(), channel(entry("a"), entry("a"))], "has the entry a twice", id="entry twice"
        ),
        pytest.param(
            [package(), channel(entry("a")), package()], "is in the catalog twice", id="twice"
        ),
        pytest.param(
            [package(), channel(entry("a", skipRange="soon"))], "'soon' is no range", id="skipRange"
        ),
        pytest.param(
            [package(), channel(entry("a")), channel(entry("x"), package="q")],
            "is in the package q, which the catalog does not have",
            id="package missing",
        ),
        pytest.param(
            [package(), channel(entry("a")), bundle("z", "1.0.0")],
            "olm.bundle a: has the version 1.0.0, as z has",
            id="versions are unique",
        ),
        pytest.param(
            [package(), channel(entry("a")), bundle("z", "one")],
            "'one' is no semantic version",
            id="version",
        ),
        pytest.param(
            [package(), channel(entry("a")), {"schema": "olm.bundle", "name": "z", "package": "p"}],
            "olm.bundle z: has 0 properties olm.package",
            id="no version",
        ),
        pytest.param([{"no": "schema"}], "is no entry of a file-based catalog", id="no schema"),
        pytest.param([{"schema": "olm.package"}], "missing required field `name`", id="no name"),
    ],
)
def test_findings(entries: list[Object], words: str) -> None:
    found = " | ".join(refusals(*entries, *THREE))
    assert words in found if words else not found


def requiring(*values: object) -> Object:
    made = bundle("a", "1.0.0")
    made["properties"] += [{"type": "olm.package.required", "value": one} for one in values]
    return made


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"packageName": "x", "versionRange": ">=1.0.0"}, ""),
        ({"packageName": "x", "versionRange": "soon"}, "names no package or no range"),
        ({"packageName": "../x", "versionRange": "1.0.0"}, "names no package or no range"),
        ({"packageName": "x"}, "names no package or no range"),
        ("x", "names no package or no range"),
    ],
)
def test_required_packages_are_checked(value: object, words: str) -> None:
    found = refusals(package(), channel(entry("a")), requiring(value))
    if words:
        assert found[0].startswith("catalog.json: olm.bundle a: its property olm.package.required")
        assert words in found[0]
    else:
        assert found == []


def test_very_many_required_packages_are_refused() -> None:
    many = [{"packageName": f"x{n}", "versionRange": "1.0.0"} for n in range(MAX_REQUIRED + 1)]
    found = refusals(package(), channel(entry("a")), requiring(*many))
    assert "requires more than 100 packages" in found[0]


def test_dependencies_of_a_bundle_directory(tmp_path: Path) -> None:
    directory = tmp_path / "bundle"
    shutil.copytree(DOCS / "examples" / "bundles" / "sample-operator" / "0.1.0", directory)
    (directory / "metadata" / "dependencies.yaml").write_text(
        "dependencies:\n"
        "- {type: olm.package, value: {packageName: other, version: '>=1.0.0'}}\n"
        "- {type: olm.gvk, value: {group: x, kind: X, version: v1}}\n"
    )
    made = read_bundle(directory)
    assert isinstance(made, BundleDirectory)
    texts = {
        name: "\n".join(map(json.dumps, entries))
        for name, entries in catalog_entries([made]).items()
    }
    found = load(texts.items())
    assert found.findings == ()
    (read,) = found.catalog.packages["sample-operator"].bundles.values()
    assert [str(one) for one in read.required] == ["other >=1.0.0"]


@pytest.mark.parametrize(
    ("skip_range", "held"),
    [("<1.1.0", ""), ("<=1.1.0", "1.1.0"), (">=1.0.0 <1.1.0 || 2.0.0", "2.0.0")],
)
def test_a_range_that_leads_back_is_a_finding(skip_range: str, held: str) -> None:
    """The catalog can be used: an update never leads back, whatever the range says."""
    made = loaded(
        package(),
        channel(entry("a"), entry("b", "a", skipRange=skip_range), entry("c", "b")),
        *THREE,
    )
    assert not made.errors
    found = [one.message for one in made.findings if "skipRange" in one.message]
    assert found == ([f"the skipRange of b holds {held}"] if held else [])


def test_a_bundle_object_that_is_no_object_is_named() -> None:
    broken = bundle("a", "1.0.0")
    broken["properties"].append({"type": "olm.bundle.object", "value": {"data": "!"}})
    assert (
        "olm.bundle a: olm.bundle.object[1]" in refusals(package(), channel(entry("a")), broken)[0]
    )
    broken["properties"][-1] = {"type": "olm.bundle.object", "value": {"ref": "/etc/passwd"}}
    assert "olm.bundle.object[1] has no data" in refusals(package(), broken)[0]
    broken["properties"][-1] = {
        "type": "olm.bundle.object",
        "value": {"data": encoded({"kind": "X"})},
    }
    assert "metadata no name" in refusals(package(), broken)[0]


@pytest.mark.parametrize(
    ("entries", "installed", "version", "following"),
    [
        pytest.param(
            [entry("a"), entry("b", "a"), entry("c", "b")], "a", "1.0.0", "b", id="one hop"
        ),
        pytest.param(
            [entry("a"), entry("b", "a"), entry("c", "b", skips=["a"])],
            "a",
            "1.0.0",
            "c",
            id="skips",
        ),
        pytest.param(
            [entry("a"), entry("b", "a"), entry("c", "b", skipRange="<1.1.0")],
            "a",
            "1.0.0",
            "c",
            id="skipRange, nearest to the head",
        ),
        pytest.param(
            [entry("b"), entry("c", "b", skipRange=">=1.0.0 <1.1.0")],
            "not-in-the-catalog",
            "1.0.5",
            "c",
            id="an installed version that the catalog no longer has",
        ),
        pytest.param(
            [entry("a", skipRange=">=1.0.0"), entry("b", "a"), entry("c", "b")],
            "b",
            "1.1.0",
            "c",
            id="never back, whatever an entry below says",
        ),
        pytest.param(
            [entry("a", skipRange=">=1.0.0"), entry("b", "a")],
            "b",
            "1.1.0",
            None,
            id="never back from the head",
        ),
        pytest.param(
            [entry("a", skipRange=">=1.0.0"), entry("b", "a", skipRange=">=1.0.0")],
            "not-in-the-catalog",
            "1.5.0",
            None,
            id="never to a lower version",
        ),
        pytest.param([entry("a"), entry("b", "a")], "b", "1.1.0", None, id="at the head"),
        pytest.param([entry("a"), entry("b", "a")], "x", "9.0.0", None, id="no way"),
        pytest.param(
            [entry("c", skipRange="<=2.0.0")],
            "c",
            "2.0.0",
            None,
            id="never the installed one itself",
        ),
    ],
)
def test_next_version(
    entries: list[Object], installed: str, version: str, following: str | None
) -> None:
    catalog = loaded(package(), channel(*entries), *THREE).catalog
    made = catalog.packages["p"]
    found = next_entry(made.channels["c"], installed, parse_version(version), made.bundles)
    assert (found.name if found else None) == following


def definition(schema: Object | None = None, **spec: object) -> Object:
    body: Object = {
        "group": "g.example.com",
        "names": {"kind": "Thing", "plural": "things"},
        "scope": "Namespaced",
        "version": "v1",
        **spec,
    }
    if schema is not None:
        body["validation"] = {"openAPIV3Schema": schema}
    return {
        "apiVersion": "apiextensions.k8s.io/v1beta1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.g.example.com"},
        "spec": body,
    }


def test_an_old_definition_without_a_schema_still_accepts_anything() -> None:
    made = convert_definition(definition()).definition
    assert made["spec"]["versions"] == [
        {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {
                "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            },
        }
    ]


def test_an_old_definition_keeps_unknown_fields_at_each_level() -> None:
    schema = {
        "properties": {
            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
            "spec": {
                "type": "object",
                "properties": {"port": {"anyOf": [{"type": "integer"}, {"type": "string"}]}},
            },
        }
    }
    columns = [{"name": "Port", "type": "string", "JSONPath": ".spec.port"}]
    made = convert_definition(definition(schema, additionalPrinterColumns=columns)).definition
    (version,) = made["spec"]["versions"]
    assert version["additionalPrinterColumns"][0]["jsonPath"] == ".spec.port"
    root = version["schema"]["openAPIV3Schema"]
    assert root["properties"]["metadata"] == {"type": "object"}
    assert root["properties"]["spec"] == {
        "type": "object",
        "properties": {"port": {"x-kubernetes-int-or-string": True}},
        "x-kubernetes-preserve-unknown-fields": True,
    }


@pytest.mark.parametrize(
    ("old", "why"),
    [
        (definition({"properties": {"spec": {"properties": {}}}}), "spec has no type"),
        (definition({"properties": {"spec": {"$ref": "#/x"}}}), "has a reference"),
        (definition({"properties": {"a": {"type": "array"}}}), "without a schema of its items"),
        (definition(conversion={"strategy": "Webhook"}), "conversion webhook"),
    ],
)
def test_what_cannot_be_converted_without_a_guess(old: Object, why: str) -> None:
    with pytest.raises(Unconvertible, match=why):
        convert_definition(old)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (bundle("a", "1.0.0", csv("b", "1.0.0")), "2 ClusterServiceVersions"),
        (
            bundle("a", "1.0.0", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}),
            "a Secret",
        ),
        (bundle("a", "1.0.0", definition()), "does not own things.g.example.com"),
        (bundle("a", "1.0.0", webhookdefinitions=[{}]), "webhookdefinitions"),
        (bundle("a", "1.0.0", install={"strategy": "magic"}), "'magic' is not `deployment`"),
        (bundle("a", "1.0.0", install=7), "is not valid"),
    ],
)
def test_not_installable(made: Object, why: str) -> None:
    catalog = loaded(package(), channel(entry("a")), made).catalog
    found = installable(catalog.packages["p"].bundles["a"])
    assert isinstance(found, NotInstallable)
    assert why in found.why


def test_the_digest_follows_the_content() -> None:
    one, same, other = (
        loaded(package(), bundle("a", "1.0.0", description=text)).catalog.packages["p"].bundles["a"]
        for text in ("x", "x", "y")
    )
    assert one.digest == same.digest != other.digest


def test_files_of_a_config_map(tmp_path: Path) -> None:
    packed = base64.b64encode(gzip.compress(b"schema: olm.package")).decode()
    bomb = base64.b64encode(gzip.compress(b" " * (MAX_FILE + 1))).decode()
    found = list(
        config_map_files(
            {
                "metadata": {"name": "m"},
                "data": {"a.yaml": "x"},
                "binaryData": {"b.yaml.gz": packed, "bomb.gz": bomb, "c": "", "d.gz": "AAAA"},
            }
        )
    )
    assert found[:2] == [("m/a.yaml", "x"), ("m/b.yaml", "schema: olm.package")]
    assert [str(one).split(";")[0] for one in found[2:]] == [
        "m/bomb.gz: has more than 16 MiB of text",
        "m/c: is not compressed",
        "m/d.gz: cannot be decompressed: Error -3 while decompressing data: incorrect header check",
    ]


def test_only_regular_files_of_the_directory_are_read(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text("schema: x")
    (tmp_path / "link.yaml").symlink_to("/etc/hostname")
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff")
    (tmp_path / "elsewhere").symlink_to("/etc")
    found = [one if isinstance(one, tuple) else one.file for one in directory_files(tmp_path)]
    assert found == ["binary.yaml", ("good.yaml", "schema: x"), "link.yaml", "pipe.yaml"]


def test_the_real_bundles() -> None:
    """Each can be read, and knows what it replaces."""
    if not FIXTURES.is_dir():
        pytest.skip("the bundles are not beside this clone")
    found = {}
    for directory in bundle_directories([FIXTURES / "bundles" / "etcd"]):
        made = read_bundle(directory)
        assert isinstance(made, BundleDirectory)
        found[made.name] = made.replaces
    assert found == {
        "etcdoperator-community.v0.6.1": "",
        "etcdoperator.v0.9.0": "",
        "etcdoperator.v0.9.2": "etcdoperator.v0.9.0",
        "etcdoperator.v0.9.4": "etcdoperator.v0.9.2",
    }
    assert isinstance(read_bundle(FIXTURES), CatalogFinding)


def test_a_file_that_is_no_yaml_is_named_with_its_line() -> None:
    (finding,) = load([("a.yaml", "schema: x\nname: [")]).errors
    assert str(finding).startswith("a.yaml: line 3: not YAML")
