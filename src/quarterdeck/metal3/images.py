"""metal3's images: the names in a release, and how an operator reads them from a ConfigMap. Pure.

A release replaces the names in the ConfigMap's JSON by its own images, so the operators' code has
no image.
"""

import json
import re

import msgspec

from quarterdeck.api.meta import Key, Object

KEY = "images.json"
IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,511}")
"""A name of an image: with another one, the pod would be stopped and no new one could start."""


class Images(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The images of metal3's containers, by the names that they have in `images.json`."""

    baremetal_operator: str
    baremetal_ironic: str
    baremetal_ironic_inspector: str
    baremetal_ipa_downloader: str
    baremetal_machine_os_downloader: str
    baremetal_static_ip_manager: str


NAMES = Images(
    baremetal_operator="baremetal-operator",
    baremetal_ironic="ironic",
    baremetal_ironic_inspector="ironic-inspector",
    baremetal_ipa_downloader="ironic-ipa-downloader",
    baremetal_machine_os_downloader="ironic-machine-os-downloader",
    baremetal_static_ip_manager="ironic-static-ip-manager",
)
"""The images' names, which a release replaces."""


class MissingImages(Exception):  # noqa: N818 - reads as what it is
    """The ConfigMap is missing, or has not every image."""


def images_in(config_map: Object | None, key: Key) -> Images:
    """The images in the ConfigMap; raises `MissingImages`."""
    if config_map is None:
        raise MissingImages(f"ConfigMap {key}: not found; the release creates it")
    text = (config_map.get("data") or {}).get(KEY)
    try:
        found = msgspec.json.decode(text or "", type=Images)
    except (msgspec.DecodeError, RecursionError) as error:
        raise MissingImages(f"ConfigMap {key}: data[{KEY!r}]: {error}; correct it") from None
    for name, image in msgspec.to_builtins(found).items():
        if not IMAGE.fullmatch(image):
            wrong = f"{name}: {image[:80]!r}"
            raise MissingImages(f"ConfigMap {key}: data[{KEY!r}]: {wrong}: name an image")
    return found


def desired_config_map(key: Key, images: Images = NAMES) -> Object:
    """The ConfigMap of a release, with the names of the images."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": key.name, "namespace": key.namespace},
        "data": {KEY: json.dumps(msgspec.to_builtins(images), indent=2) + "\n"},
    }
