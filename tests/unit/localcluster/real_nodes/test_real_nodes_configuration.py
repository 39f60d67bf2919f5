"""The files of a real node: what a kubelet, kube-proxy, containerd and the registry are told."""

import tomllib
from ipaddress import ip_address, ip_network

import pytest
import yaml

from quarterdeck.localcluster.certificates import SERVICE_NETWORK
from quarterdeck.localcluster.components import POD_NETWORK
from quarterdeck.localcluster.real_nodes import addresses, configuration
from quarterdeck.localcluster.real_nodes.addresses import MOST_NODES, RealNode, real_nodes

NODE = RealNode(2)


def test_no_two_networks_overlap() -> None:
    nodes = real_nodes(MOST_NODES)
    machines = ip_network(f"{addresses.CONTROL_PLANE}/{addresses.PREFIX_LENGTH}", strict=False)
    networks = [ip_network(one) for one in (SERVICE_NETWORK, POD_NETWORK)]
    networks += [machines, *(ip_network(node.pods) for node in nodes)]
    assert not any(
        one.overlaps(other)
        for position, one in enumerate(networks)
        for other in networks[position + 1 :]
    )
    assert all(ip_network(node.pods).subnet_of(ip_network(addresses.PODS)) for node in nodes)  # type: ignore[arg-type]
    taken = {ip_address(node.address) for node in nodes} | {ip_address(addresses.CONTROL_PLANE)}
    assert len(taken) == MOST_NODES + 1
    assert all(address in machines for address in taken)
    assert ip_address(addresses.DNS_SERVICE) in ip_network(SERVICE_NETWORK)


def test_a_kubelet_leaves_the_machine_alone() -> None:
    made = configuration.kubelet_configuration(NODE, "quarterdeck-x-node-2")
    assert made["cgroupRoot"] == "/quarterdeck-x-node-2"
    assert made["makeIPTablesUtilChains"] is False
    assert made["address"] == NODE.address
    assert made["authentication"]["anonymous"]["enabled"] is False
    assert made["authorization"] == {"mode": "Webhook"}


def test_kube_proxy_does_not_size_the_machines_connection_table() -> None:
    made = configuration.kube_proxy_configuration(NODE)
    assert made["mode"] == "nftables"
    assert made["conntrack"]["maxPerCore"] == made["conntrack"]["min"] == 0


def test_pods_get_addresses_of_their_node() -> None:
    bridge, portmap = configuration.cni_configuration(NODE)["plugins"]
    assert bridge["ipam"]["ranges"] == [[{"subnet": NODE.pods}]]
    assert portmap["capabilities"] == {"portMappings": True}


def test_containerd_starts_pods_with_our_image() -> None:
    made = tomllib.loads(configuration.containerd_configuration(pause="p@sha256:1", runc="/r"))
    images = made["plugins"]["io.containerd.cri.v1.images"]
    assert images["pinned_images"] == {"sandbox": "p@sha256:1"}
    runtime = made["plugins"]["io.containerd.cri.v1.runtime"]
    assert runtime["containerd"]["runtimes"]["runc"]["options"]["BinaryName"] == "/r"
    assert runtime["restrict_oom_score_adj"] is True


def test_images_come_from_the_registry_by_its_own_authority() -> None:
    made = tomllib.loads(configuration.registry_host())
    assert made["server"] == f"https://{addresses.REGISTRY}"
    (host,) = made["host"].values()
    assert host["ca"] == f"{configuration.ETC}/ca.crt"
    assert "push" not in host["capabilities"]


def test_the_registry_serves_tls_only() -> None:
    made = configuration.registry_configuration("/data", "/tls.crt", "/tls.key")
    assert yaml.safe_load(yaml.safe_dump(made)) == made
    assert made["http"]["tls"] == {"certificate": "/tls.crt", "key": "/tls.key"}


@pytest.mark.parametrize("name", ["vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops"])
def test_what_a_kubelet_sets_is_covered(name: str) -> None:
    assert configuration.sysctl_files()[name].strip().isdigit()


def test_real_nodes_are_found_among_components() -> None:
    names = ["etcd", "node-1", "registry", "node-2", "node-x"]
    assert addresses.node_names(names) == ["node-1", "node-2"]
