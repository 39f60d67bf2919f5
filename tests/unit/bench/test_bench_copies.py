"""Copies of stored objects: other names and uids, the same lengths."""

import msgspec
from bench import widgets
from bench.copies import copied

OWNER, OWN = "11111111-2222-4333-8444-555555555555", "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"


def test_a_copy_is_what_would_have_been_written_under_its_number() -> None:
    widget = widgets.widget(17)
    widget["metadata"]["uid"] = OWNER
    config_map = widgets.config_map(17, 0, OWNER)
    config_map["metadata"]["uid"] = OWN
    stored = (msgspec.json.encode(widget), msgspec.json.encode(config_map))
    copies = copied(stored, 17, 98765)
    assert [len(value) for value in copies] == [len(value) for value in stored]
    made, belonging = (msgspec.json.decode(value) for value in copies)
    uid, own = made["metadata"].pop("uid"), belonging["metadata"].pop("uid")
    assert made == widgets.widget(98765)
    assert belonging == widgets.config_map(98765, 0, uid)
    assert len({uid, own, OWNER, OWN}) == 4
