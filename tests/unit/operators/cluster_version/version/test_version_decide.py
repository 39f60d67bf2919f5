"""Which release is applied next, with the releases directory read from disk."""

from datetime import timedelta
from pathlib import Path

import pytest
from tests.unit.operators.cluster_version.version.builders import START, entry, offer

from quarterdeck.api.config_v1 import Update
from quarterdeck.operators.cluster_version.history import History
from quarterdeck.operators.cluster_version.payloads import REUSE_SECONDS, Loaded, Payloads
from quarterdeck.operators.cluster_version.settings import Settings
from quarterdeck.operators.cluster_version.version.decide import (
    ReleaseDecision,
    broken,
    decide,
    empty,
)
from quarterdeck.operators.cluster_version.version.updates import UpdateRefused, UpdateRequest
from quarterdeck.payload.model import (
    KnownRelease,
    Payload,
    PayloadError,
    PayloadProblem,
)
from quarterdeck.payload.releases import Offer, Releases
from quarterdeck.payload.seal import seal

LATER = START + timedelta(hours=1)
KNOWN = Releases(offers=(offer("1.1.0", "1.0.0"), offer("1.0.0")))
BROKEN = PayloadError(
    tuple(PayloadProblem(file=f"{n}.yaml", line=n, message="no", remedy="mend") for n in range(9))
)


async def decided(
    history: History, update: Update | None = None, *, unreadable: str = "", known: Releases = KNOWN
) -> ReleaseDecision:
    async def load(wanted: Offer) -> Loaded | UpdateRefused:
        if wanted.release.version == unreadable:
            return broken(unreadable, BROKEN)
        return Loaded(
            payload=Payload(release=KnownRelease(version=wanted.release.version)), hash="h"
        )

    asked = UpdateRequest(update=update, history=history, releases=known)
    return await decide(asked, load, "1.0.0", LATER)


async def test_a_cluster_without_a_history_begins_with_the_operators_release() -> None:
    decision = await decided((), Update(version="1.1.0"))
    assert decision.release.version == "1.0.0"
    assert [(one.version, one.state) for one in decision.history] == [("1.0.0", "Partial")]
    assert decision.loaded is not None


async def test_the_history_says_what_goes_on_whatever_the_operators_release_is() -> None:
    history = (entry("1.1.0", "Partial", 1), entry("1.0.0"))
    decision = await decided(history)
    assert decision.release.version == "1.1.0"
    assert decision.history is history


async def test_an_update_begins_when_its_payload_is_loaded() -> None:
    decision = await decided((entry("1.0.0"),), Update(version="1.1.0"))
    assert decision.release.version == "1.1.0"
    assert [one.version for one in decision.history] == ["1.1.0", "1.0.0"]
    assert decision.history[0].started_time == LATER


async def test_an_update_whose_payload_is_broken_does_not_begin() -> None:
    history = (entry("1.0.0"),)
    decision = await decided(history, Update(version="1.1.0"), unreadable="1.1.0")
    assert decision.release.version == "1.0.0"
    assert decision.history is history
    assert decision.loaded is not None
    assert decision.unusable is None
    assert decision.refused is not None
    told = str(decision.refused)
    assert told.startswith("spec.desiredUpdate.version: '1.1.0': ")
    assert "4.yaml:4: no; mend | and 4 more" in told


@pytest.mark.parametrize("history", [(), (entry("1.0.0"),)])
async def test_a_release_that_cannot_be_read_is_not_applied(history: History) -> None:
    decision = await decided(history, unreadable="1.0.0")
    assert decision.loaded is None
    assert decision.history == history
    assert decision.unusable is not None
    field = "status.desired" if history else "RELEASE_VERSION"
    assert str(decision.unusable).startswith(f"{field}: '1.0.0': its payload cannot be read")


@pytest.mark.parametrize("history", [(), (entry("1.0.0"),)])
async def test_a_release_that_is_not_there_is_told_with_what_could_not_be_read(
    history: History,
) -> None:
    problem = PayloadProblem(file="x/release-metadata", message="empty", remedy="fill it")
    decision = await decided(history, known=Releases(problems=(problem,)))
    assert decision.loaded is None
    assert decision.unusable is not None
    assert "x/release-metadata: empty" in str(decision.unusable)


async def test_an_image_that_is_not_fetched_is_told_with_the_variable_that_names_it() -> None:
    async def load(wanted: Offer) -> Loaded:
        raise AssertionError(wanted)

    image = "registry.test/q:1.0.0"
    asked = UpdateRequest(update=None, history=(), releases=Releases(), first_image=image)
    decision = await decide(asked, load, "1.0.0", LATER)
    assert str(decision.unusable).startswith(f"RELEASE_IMAGE: {image!r}: ")


async def test_a_release_that_is_not_there_is_told_with_the_directory_and_what_is_in_it() -> None:
    known = Releases(offers=(offer("1.1.0", "1.0.0"),), directory="/releases")
    decision = await decided((), known=known)
    assert str(decision.unusable) == (
        "RELEASE_VERSION: '1.0.0': there is no such release in /releases (--releases), only 1.1.0; "
        "put it there, or name another directory"
    )


async def test_away_from_a_release_that_is_gone_there_is_a_way() -> None:
    known = Releases(offers=(offer("1.1.0", "1.0.0"),))
    decision = await decided((entry("1.0.0"),), Update(version="1.1.0"), known=known)
    assert decision.release.version == "1.1.0"
    assert decision.unusable is None


def test_a_release_of_which_nothing_counts_names_the_profile() -> None:
    told = str(empty(Payload(release=KnownRelease(version="1.0.0")), "single-nod"))
    assert "none of its 0 manifests counts on this cluster, whose profile is single-nod" in told


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_payloads_are_kept_while_their_files_are_as_they_were(tmp_path: Path) -> None:
    release = tmp_path / "a"
    release.mkdir()
    (release / "release-metadata").write_text("version: 1.0.0")
    seal(release)
    clock = Clock()
    payloads = Payloads(Settings(releases=str(tmp_path), profile="any"), clock)
    (found,) = (await payloads.releases()).offers
    first = await payloads.load(found)
    assert isinstance(first, Loaded)
    clock.now += REUSE_SECONDS + 1
    assert await payloads.load(found) is first
    (release / "x.yaml").write_text("kind: [")
    assert await payloads.load(found) is first, "not looked at again so soon"
    clock.now += REUSE_SECONDS + 1
    assert isinstance(await payloads.load(found), PayloadError)
    (release / "x.yaml").unlink()
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "release-metadata").write_text("version: 1.1.0")
    clock.now += REUSE_SECONDS + 1
    mended = await payloads.load(found)
    assert isinstance(mended, Loaded)
    assert len((await payloads.releases()).offers) == 2


async def test_the_release_of_the_own_image_is_known_by_its_digest(tmp_path: Path) -> None:
    """An operator that runs from a release image needs neither a directory nor a registry."""
    (tmp_path / "release-metadata").write_text("version: 1.0.0")
    image = f"registry.example.test/q@sha256:{'a' * 64}"
    settings = Settings(own_release=str(tmp_path), release_image=image)
    assert settings.applies_payload
    found = await Payloads(settings).releases()
    offer = found.by_digest(f"sha256:{'a' * 64}")
    assert offer is not None
    assert (offer.release.version, offer.release.image) == ("1.0.0", image)
    assert found.by_version("1.0.0") == offer
    named = await Payloads(Settings(own_release=str(tmp_path), release_image="q:1")).releases()
    assert [one.release.image for one in named.offers] == ["q:1"]


def test_without_any_release_no_payload_is_applied(tmp_path: Path) -> None:
    assert not Settings(own_release=str(tmp_path / "none")).applies_payload
