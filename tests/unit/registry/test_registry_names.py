"""Names of images, mirrors, pull secrets and challenges."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.registry.credentials import (
    BearerChallenge,
    PullSecretError,
    bearer_challenge,
    parse_pull_secret,
)
from quarterdeck.registry.mirrors import parse_mirrors, places
from quarterdeck.registry.reference import digest_of, has_registry, parse_reference

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("r.test/q:1.0", ("r.test", "q", "1.0", "")),
        ("r.test:5000/a/q:1.0", ("r.test:5000", "a/q", "1.0", "")),
        (f"r.test/q@{DIGEST}", ("r.test", "q", "", DIGEST)),
        (f"r.test/q:1@{DIGEST}", ("r.test", "q", "1", DIGEST)),
        ("localhost/q:1", ("localhost", "q", "1", "")),
        ("127.0.0.1:5000/q:1", ("127.0.0.1:5000", "q", "1", "")),
    ],
)
def test_a_reference_and_its_text(text: str, parts: tuple[str, ...]) -> None:
    found = parse_reference(text)
    assert (found.registry, found.repository, found.tag, found.digest) == parts
    assert str(found) == text
    assert has_registry(text)


def test_without_tag_and_digest_it_is_latest() -> None:
    assert str(parse_reference("r.test/q")) == "r.test/q:latest"


@pytest.mark.parametrize(
    "text", ["", "quarterdeck:1.0.0", "a/q:1", "r.test/Q", "r.test/q@sha256:abc", "r.test/../q:1"]
)
def test_what_cannot_be_asked_for_is_refused_with_an_example(text: str) -> None:
    assert not has_registry(text)
    with pytest.raises(ValueError, match=r"registry\.example\.test/"):
        parse_reference(text)


@given(st.text(max_size=80))
def test_any_text_is_a_reference_or_refused(text: str) -> None:
    try:
        found = parse_reference(text)
    except ValueError:
        return
    assert parse_reference(str(found)) == found


def test_the_digest_in_a_reference() -> None:
    assert digest_of(f"r.test/q:1@{DIGEST}") == DIGEST
    assert digest_of("r.test/q:1") == ""
    assert digest_of("r.test/q@sha512:" + "a" * 128) == ""


def test_mirrors_come_before_the_registry_itself() -> None:
    mirrors = parse_mirrors("r.test=m1.test:5000/copies, r.test/team=m2.test, other.test=m3.test")
    asked = [str(place) for place in places(parse_reference(f"r.test/team/q@{DIGEST}"), mirrors)]
    assert asked == [
        f"m1.test:5000/copies/team/q@{DIGEST}",
        f"m2.test/q@{DIGEST}",
        f"r.test/team/q@{DIGEST}",
    ]


def test_blanks_around_a_mirror_do_not_count() -> None:
    (mirror,) = parse_mirrors(" r.test = m.test/copies ")
    assert (mirror.source, mirror.place) == ("r.test", "m.test/copies")


def test_a_mirror_of_a_repository_itself() -> None:
    mirrors = parse_mirrors("r.test/team/q=m.test/copy")
    assert str(places(parse_reference("r.test/team/q:1"), mirrors)[0]) == "m.test/copy:1"
    assert len(places(parse_reference("r.test/team/quarterdeck:1"), mirrors)) == 1


@pytest.mark.parametrize("text", ["r.test", "=m.test", "r.test=", "r.test=mirror"])
def test_what_is_no_mirror_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write"):
        parse_mirrors(text)


def secret(**auths: dict[str, str]) -> bytes:
    return json.dumps({"auths": auths}).encode()


def test_the_longest_entry_that_fits_counts() -> None:
    one, two = (base64.b64encode(text).decode() for text in (b"u:1", b"u:2"))
    found = parse_pull_secret(
        secret(
            **{
                "r.test": {"auth": one},
                "r.test/team": {"auth": two},
                "https://d.test/v1/": {"username": "u", "password": "2"},
            }
        )
    )
    assert found.basic("r.test", "q") == f"Basic {one}"
    assert found.basic("r.test", "team/q") == f"Basic {two}"
    assert found.basic("r.test", "teams/q") == f"Basic {one}"
    assert found.basic("d.test", "q") == f"Basic {two}"
    assert found.basic("r.test.evil", "q") == ""


def test_an_empty_entry_is_no_credential_and_hides_no_other() -> None:
    """As in the file of a docker that has a credential store."""
    auth = base64.b64encode(b"u:1").decode()
    found = parse_pull_secret(secret(**{"r.test": {"auth": auth}, "d.test": {}}))
    assert found.basic("r.test", "q") == f"Basic {auth}"
    assert found.basic("d.test", "q") == ""


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"secret-word",
        b'{"auths": []}',
        secret(r={"auth": "!"}),
        secret(r={"auth": "dTox"[:2]}),
    ],
)
def test_what_is_no_pull_secret_is_refused_without_showing_it(data: bytes) -> None:
    with pytest.raises(PullSecretError) as refused:
        parse_pull_secret(data)
    assert "correct it" in str(refused.value)
    assert "secret-word" not in str(refused.value)


def test_challenges() -> None:
    header = 'Bearer realm="https://t.test/token",service="r.test",scope="repository:q:pull"'
    expected = BearerChallenge("https://t.test/token", "r.test", "repository:q:pull")
    assert bearer_challenge(header) == expected
    assert bearer_challenge('Basic realm="x"') is None
    assert bearer_challenge("") is None
    assert bearer_challenge("Bearer " + "a" * 10_000) == BearerChallenge("")
