from pathlib import Path

from quarterdeck.haproxy.render import CONFIG_FILE, admin_socket
from quarterdeck.router.generations import Generations


def test_many_reloads_leave_few_files_behind(tmp_path: Path) -> None:
    """A worker leaves its socket behind: at a reload every five seconds, 17,000 of them a day."""
    files = Generations(tmp_path)
    for number in range(1, 21):
        files.write(number, {CONFIG_FILE: f"{number}"})
        Path(admin_socket(str(tmp_path), number)).touch()
        files.make_current(number)
        assert files.config.read_text() == f"{number}"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *(f"admin-{number}.sock" for number in (18, 19, 20)),
        "current",
        *(f"generation-{number}" for number in (18, 19, 20)),
    ]
