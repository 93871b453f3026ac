"""A ledger that somebody sent: whatever its rows say, nothing around it is touched, and what does not fit is told."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from cellrisk.cli import main
from cellrisk.errors import CellriskError
from cellrisk.publish.releasing import Release
from cellrisk.repeat.ledger import Ledger
from cellrisk.repeat.ledger.backends import CHANGED, TRIGGERS
from cellrisk.repeat.ledger.entry import compute_digest
from cellrisk.repeat.ledger.verification import digest_regular, read_end
from tests.refusals import refused
from tests.repeat.ledger.conftest import Where
from tests.repeat.ledger.deaths import FIELDS

TOKEN = "7f" * 16


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory, released: Release) -> Path:
    """A ledger with every kind of entry, and a release that stands beside it."""
    folder = tmp_path_factory.mktemp("sound")
    with Ledger(folder / "sent.ledger", create=True) as ledger:
        ledger.set_limit("everyone", epsilon=9)
        ledger.declare("north", part_of="everyone")
        ledger.add(**FIELDS, purpose="by hand", cohort="north")
        ledger.save(released, folder / "released.csv", cohort="everyone")
    return folder


class Scene:
    """A copy of that ledger, and files around it that nobody may touch."""

    def __init__(self, sound: Path, folder: Path) -> None:
        shutil.copytree(sound, folder)
        self.folder, self.path = folder, folder / "sent.ledger"
        self.canaries = [
            folder / name for name in (".bashrc", ".bash_history", "a.lock", "victim.csv", f".x.{TOKEN}.new")
        ]
        for canary in self.canaries:
            canary.write_text(f"precious {canary.name}")
        staged = folder / f".victim.csv.{TOKEN}.new"
        staged.write_text("to be moved over the other")
        (folder / f".victim.csv.json.{TOKEN}.new").write_text("{}")
        os.mkfifo(folder / "pipe.csv")
        self.before = self.look()
        self.bodies = {n: json.loads(body) for n, body in self.execute("SELECT number, body FROM entries")}

    def look(self) -> dict[str, bytes]:
        found = {path.name: path.read_bytes() for path in self.folder.iterdir() if path.is_file()}
        return {name: content for name, content in found.items() if not name.startswith("sent.ledger")}

    def execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            return connection.execute(statement, values).fetchall()

    def disarm(self) -> None:
        for name in ("updated", "deleted", "replaced"):
            self.execute(f"DROP TRIGGER IF EXISTS entries_are_not_{name}")

    def arm(self) -> None:
        for statement in TRIGGERS["sqlite"]:
            self.execute(statement.replace("TRIGGER ", "TRIGGER IF NOT EXISTS ", 1))

    def rewrite(self, number: int, body: str) -> None:
        """Puts a body in place of an entry's and computes every digest anew, as a careful forger would."""
        self.disarm()
        rows = self.execute("SELECT number, body FROM entries ORDER BY number")
        previous = self.execute("SELECT id FROM ledger")[0][0]
        for at, old in rows:
            text = body if at == number else old
            digest = compute_digest(at, previous, text)
            self.execute(
                "UPDATE entries SET previous = ?, digest = ?, body = ? WHERE number = ?", previous, digest, text, at
            )
            previous = digest
        self.execute("UPDATE ledger SET digest = ?", previous)
        self.arm()


@pytest.fixture
def scene(sound: Path, tmp_path: Path) -> Scene:
    return Scene(sound, tmp_path / "scene")


def verify(scene: Scene, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main(["ledger", "verify", str(scene.path), "--wait", "1"])
    said = capsys.readouterr()
    assert "internal error" not in said.err
    return code, said.out + said.err


def look_and_write(ledger: Ledger, released: Release, folder: Path) -> Iterator[Callable[[], object]]:
    """All that the commands do: list, show, verify, head, export; and those that write."""
    yield lambda: [(str(entry), entry.headline, entry.to_dict()) for entry in ledger.entries()]
    yield lambda: [str(ledger.spent(name)) for name in ledger.state().declared]
    yield lambda: (str(ledger.verify()), json.dumps(ledger.verify().to_dict()))
    yield ledger.note_head
    yield lambda: ledger.export(folder / "out.jsonl")
    yield lambda: ledger.add(**FIELDS, cohort="north")
    yield lambda: ledger.recover(folder)
    yield lambda: save(ledger, released, folder / "new.csv")


def save(ledger: Ledger, released: Release, path: Path) -> None:
    ledger.save(released, path, force=True, cohort="everyone")


def is_done(act: Callable[[], object]) -> bool:
    """Whether something was done, or refused in one line; anything else comes through."""
    try:
        act()
    except CellriskError as refusal:
        said = str(refusal)
    else:
        return True
    assert "\n" not in said
    return False


def use(scene: Scene, released: Release) -> list[bool]:
    """Does all of it; whether each was done or refused."""
    done: list[bool] = []

    def open_and_use() -> None:
        with Ledger(scene.path, wait=1) as ledger:
            done.extend(is_done(act) for act in look_and_write(ledger, released, scene.folder.parent))

    is_done(open_and_use)
    assert scene.look() == scene.before
    return done


def test_the_sound_one_is_whole(scene: Scene, released: Release, capsys: pytest.CaptureFixture[str]) -> None:
    assert use(scene, released) == [True] * 8
    assert verify(scene, capsys)[0] == 0


# What was seen to do harm.


@pytest.mark.parametrize("left", ["nothing", "a folder", "the ledger"])
def test_a_changed_description_is_told_without_its_file(
    scene: Scene, capsys: pytest.CaptureFixture[str], left: str
) -> None:
    file, description = scene.folder / "released.csv", scene.folder / "released.csv.json"
    file.unlink()
    if left == "a folder":
        file.mkdir()
    elif left == "the ledger":
        os.link(scene.path, file)
    assert verify(scene, capsys)[0] == 0
    kept = description.read_text()
    description.write_text(kept.replace("job", "jab"))
    code, text = verify(scene, capsys)
    assert code == 3
    assert "the description released.csv.json of its file is not what was released" in text
    description.unlink()
    assert verify(scene, capsys)[0] == 0  # both were taken elsewhere


def test_what_is_no_file_is_not_even_opened(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """To open a pipe lets somebody go on who waits to write to it; to open a device can do anything."""
    opened, open_file = [], os.open
    monkeypatch.setattr(os, "open", lambda path, *more: (opened.append(str(path)), open_file(path, *more))[1])
    (scene.folder / "link.csv").symlink_to("pipe.csv")
    (scene.folder / "good.csv").symlink_to("victim.csv")
    for name in ("pipe.csv", "link.csv", ".", "nothing.csv"):
        assert read_end(scene.folder / name) is None
        assert digest_regular(scene.folder / name, 0) is None
    assert read_end(Path("/dev/null")) is None
    assert opened == []
    assert read_end(scene.folder / "good.csv") == b"precious victim.csv"
    assert len(opened) == 1


OBJECTS = {
    "a trigger that writes": "CREATE TRIGGER more AFTER INSERT ON entries BEGIN DELETE FROM ledger; END",
    "a guard of another body": (
        "CREATE TRIGGER entries_are_not_updated BEFORE UPDATE ON entries WHEN 0 "
        "BEGIN SELECT RAISE(ABORT, 'entries of a ledger are never changed'); END"
    ),
    "a foreign table": "CREATE TABLE more (x)",
    "a foreign view": "CREATE VIEW more AS SELECT 1",
    "a foreign index": "CREATE INDEX more ON entries (body)",
    "no guard": "SELECT 1",
}


@pytest.mark.parametrize("name", OBJECTS)
def test_foreign_or_missing_triggers_are_told_and_stop_those_who_write(
    scene: Scene, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    if "guard" in name:
        scene.execute("DROP TRIGGER entries_are_not_updated")
    scene.execute(OBJECTS[name])
    code, text = verify(scene, capsys)
    assert code == 3
    assert CHANGED in text
    with Ledger(scene.path) as ledger:
        assert len(ledger.entries()) == 5
        with refused("changed"):
            ledger.add(**FIELDS, cohort="north")


SLY = "CREATE TRIGGER sqlite_sly AFTER INSERT ON entries BEGIN DELETE FROM ledger; END"
LISTED = {
    "a trigger of a reserved name": ("trigger", "sqlite_sly", SLY),
    "a trigger that is listed as an index": ("index", "sqlite_autoindex_ledger_9", SLY),
    "a trigger that is listed as a table": ("table", "sqlite_sequence", SLY),
    "a trigger that is listed as a guard": ("trigger", "entries_are_not_updated", SLY),
}


@pytest.mark.parametrize("name", LISTED)
def test_a_trigger_under_a_false_name_is_told(scene: Scene, capsys: pytest.CaptureFixture[str], name: str) -> None:
    with closing(sqlite3.connect(scene.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        kind, listed, statement = LISTED[name]
        connection.execute("INSERT INTO sqlite_master VALUES (?, ?, 'entries', 0, ?)", (kind, listed, statement))
        connection.execute("PRAGMA schema_version = 99")
    code, text = verify(scene, capsys)
    assert code in (2, 3)  # some of them SQLite itself does not take
    assert CHANGED in text or "damaged" in text or "this is not a ledger" in text
    with suppress(CellriskError), Ledger(scene.path) as ledger:
        ledger.add(**FIELDS, cohort="north")
    assert len(scene.execute("SELECT number FROM entries")) == 5 if code == 3 else True


def test_a_foreign_object_behind_many_is_told(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(sqlite3.connect(scene.path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        ((there,),) = connection.execute("SELECT count(*) FROM sqlite_master")
        views = [(f"more{number}", f"CREATE VIEW more{number} AS SELECT 1") for number in range(1000 - there)]
        connection.executemany("INSERT INTO sqlite_master VALUES ('view', ?1, ?1, 0, ?2)", views)
        connection.commit()
    code, text = verify(scene, capsys)
    assert code == 3
    assert CHANGED in text
    scene.execute("CREATE VIEW last AS SELECT 1")
    code, text = verify(scene, capsys)
    assert code == 2
    assert "this is not a ledger" in text


@pytest.mark.parametrize("table", ["ledger", "entries"])
@pytest.mark.parametrize("change", ["no key", "no types", "a check", "a default"])
def test_a_table_of_another_making_is_told(
    scene: Scene, capsys: pytest.CaptureFixture[str], table: str, change: str
) -> None:
    made = scene.execute("SELECT sql FROM sqlite_master WHERE name = ?", table)[0][0]
    other = {
        "no key": made.replace(" PRIMARY KEY", ""),
        "no types": made.replace(" TEXT", ""),
        "a check": made[:-1] + ", CHECK (1))",
        "a default": made.replace("TEXT NOT NULL", "TEXT DEFAULT 'x' NOT NULL", 1),
    }[change]
    assert other != made
    rows = scene.execute(f"SELECT * FROM {table}")
    scene.disarm()
    scene.execute(f"DROP TABLE {table}")
    scene.execute(other)
    for row in rows:
        scene.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", *row)
    scene.arm()
    code, text = verify(scene, capsys)
    assert (code, "this is not a ledger" in text) == (2, True)


def test_a_number_that_is_given_twice_is_told(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    rows = scene.execute("SELECT * FROM entries")
    scene.disarm()
    scene.execute("DROP TABLE entries")
    scene.execute("CREATE TABLE entries (number INTEGER, previous TEXT, digest TEXT, body TEXT)")
    for row in [(*rows[3][:3], "{}"), *rows]:
        scene.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", *row)
    scene.arm()
    code, text = verify(scene, capsys)
    assert (code, "this is not a ledger" in text) == (2, True)


@pytest.mark.parametrize("number", [900_000_000_000_000, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("body", ["whole", "cannot be read"])
def test_a_number_past_all_others_takes_no_time(
    scene: Scene, capsys: pytest.CaptureFixture[str], number: int, body: str
) -> None:
    """What is done for an entry does not grow with its number, nor with that in the head, nor with the file's size."""
    scene.disarm()
    scene.execute("UPDATE entries SET number = ? WHERE number = 4", number)
    if body != "whole":
        scene.execute("UPDATE entries SET body = CAST(x'ff' AS TEXT) WHERE number = 2")
        scene.execute("UPDATE ledger SET number = ?", 2**53)
    scene.arm()
    with scene.path.open("r+b") as stream:
        stream.truncate(1 << 36)
    code, text = verify(scene, capsys)
    assert code == 3
    assert "its file is damaged" in text if body != "whole" else "was inserted" in text


def test_foreign_or_missing_triggers_in_a_database(in_database: Where) -> None:
    with in_database.open() as ledger:
        ledger.declare("everyone")
        assert ledger.verify().ok
        for change in (
            "ALTER TABLE entries DISABLE TRIGGER entries_are_not_changed",
            "DROP TRIGGER entries_are_not_emptied ON entries",
            "CREATE TRIGGER more AFTER INSERT ON ledger FOR EACH ROW EXECUTE FUNCTION refuse_to_change_entries()",
            "CREATE RULE quiet AS ON DELETE TO ledger DO INSTEAD NOTHING",
        ):
            in_database.execute(change)
            assert any(problem.text == CHANGED for problem in ledger.verify().problems), change
            with refused("changed"):
                ledger.declare("others", part_of="everyone")


@pytest.mark.parametrize("table", ["ledger", "entries"])
def test_a_view_in_place_of_a_table_is_never_asked(scene: Scene, released: Release, table: str) -> None:
    """A view can count for ever."""
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
    columns = [name for _, name, *_ in scene.execute(f"PRAGMA table_info({table})")]
    scene.execute(f"DROP TABLE {table}")
    scene.execute(f"CREATE VIEW {table} AS {endless} SELECT {', '.join(f'i AS {name}' for name in columns)} FROM n")
    assert use(scene, released) == []


@pytest.mark.parametrize("end", ["-journal", "-wal"])
def test_what_stands_beside_a_ledger_is_not_obeyed(scene: Scene, released: Release, end: str) -> None:
    """A rollback journal can name another file, which SQLite then deletes; a link leads elsewhere."""
    if end == "-wal":
        Path(f"{scene.path}{end}").symlink_to(scene.folder / "victim.csv")
    else:
        Path(f"{scene.path}{end}").write_bytes(bytes.fromhex("d9d505f920a163d7") + bytes(504))
    assert use(scene, released) == []


@pytest.mark.parametrize("digest", ["of the last entry", "of no entry"])
def test_what_is_staged_is_moved_only_where_it_is_what_its_entry_says(scene: Scene, digest: str) -> None:
    """A hidden folder that somebody has put there, with the name of a file to be replaced."""
    identity = scene.execute("SELECT id FROM ledger")[0][0]
    known = scene.execute("SELECT digest FROM entries WHERE number = 5")[0][0]
    planted = scene.folder / f".{identity}.{known if digest == 'of the last entry' else '0' * 64}.new"
    planted.mkdir()
    (planted / "victim.csv").write_text("to be moved over the other")
    (planted / "released.csv").write_text("and over this one")
    with Ledger(scene.path) as ledger:
        done = ledger.recover(scene.folder)
    assert scene.look() == scene.before
    assert done.finished == ()
    assert (done.removed, done.left) == ((0, 1) if digest == "of the last entry" else (1, 0))


def test_a_link_is_not_taken_for_what_is_staged(scene: Scene, tmp_path: Path) -> None:
    identity = scene.execute("SELECT id FROM ledger")[0][0]
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("kept")
    (scene.folder / f".{identity}.{'0' * 64}.new").symlink_to(tmp_path / "precious")
    (scene.folder / f".{identity}.{'0' * 32}.part").symlink_to(tmp_path / "precious")
    known = scene.execute("SELECT digest FROM entries WHERE number = 5")[0][0]
    planted, same = scene.folder / f".{identity}.{known}.new", tmp_path / "precious" / "same"
    planted.mkdir()
    same.write_bytes((scene.folder / "released.csv").read_bytes())
    same.chmod(0o600)
    (planted / "released.csv").symlink_to(same)
    with Ledger(scene.path) as ledger:
        assert ledger.recover(scene.folder).finished == ()
    assert (tmp_path / "precious" / "file").read_text() == "kept"
    assert same.stat().st_mode & 0o777 == 0o600


def test_cohorts_that_lead_round_in_a_circle_are_told(
    scene: Scene, released: Release, capsys: pytest.CaptureFixture[str]
) -> None:
    told = json.loads(scene.execute("SELECT body FROM entries WHERE number = 3")[0][0])
    for cohort, part_of in (("north", "north"), ("everyone", "north"), ("everyone", None)):
        scene.rewrite(3, json.dumps({**told, "cohort": cohort, "part_of": part_of}))
        assert verify(scene, capsys)[0] == 3
        assert not any(use(scene, released)[:2])


@pytest.mark.parametrize("name", ["pipe.csv", "sent.ledger", "victim.csv", "/dev/zero", "//host/share", "..", "../x"])
def test_a_name_that_an_entry_gives_its_file_is_only_compared(
    scene: Scene, released: Release, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    body = json.loads(scene.execute("SELECT body FROM entries WHERE number = 5")[0][0])
    scene.rewrite(5, json.dumps({**body, "file": {"name": name, "sha256": "0" * 64, "bytes": 10**12}}))
    code, text = verify(scene, capsys)
    assert code == 3  # the description names another digest
    assert "internal" not in text
    use(scene, released)


@pytest.mark.parametrize("ending", ["json", "jsonl"])
def test_an_entry_with_half_a_character_is_told(
    scene: Scene, capsys: pytest.CaptureFixture[str], tmp_path: Path, ending: str
) -> None:
    """JSON can spell what no file can hold, under a key that nobody reads."""
    ((body,),) = scene.execute("SELECT body FROM entries WHERE number = 2")
    scene.rewrite(2, body.replace("{", '{"\\ud800": 1, ', 1))
    assert main(["ledger", "verify", str(scene.path)]) == 3
    assert "cannot be read as an entry" in capsys.readouterr().out
    assert main(["ledger", "export", str(scene.path), "--output", str(tmp_path / f"out.{ending}")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (tmp_path / f"out.{ending}").exists()


@pytest.mark.parametrize("kind", [{}, [], None, 5, "", "other"])
def test_an_entry_of_a_strange_kind_is_told(scene: Scene, capsys: pytest.CaptureFixture[str], kind: Any) -> None:
    scene.rewrite(4, json.dumps({**scene.bodies[4], "kind": kind}))
    code, text = verify(scene, capsys)
    assert code == 3
    assert "cannot be read as an entry" in text


# Whatever else.


def spoil_json(draw: random.Random, value: Any, strange: Callable[[], Any]) -> Any:
    """A body with one part of it exchanged, left out or put in."""
    if isinstance(value, dict) and value and draw.random() < 0.85:
        name = draw.choice(list(value))
        if draw.random() < 0.15:
            return {key: part for key, part in value.items() if key != name}
        if draw.random() < 0.1:
            return {**value, "more": strange()}
        return {**value, name: spoil_json(draw, value[name], strange)}
    return strange()


COLUMNS = {
    "ledger": ("id", "what", "schema_version", "created", "number", "digest"),
    "entries": ("number", "previous", "digest", "body"),
}


def spoil(scene: Scene, draw: random.Random) -> None:
    """Changes a row: an entry, well chained, or any column of any table."""
    paths = [*map(str, scene.canaries), str(scene.folder), str(scene.path), "/etc/passwd", "/dev/zero"]
    texts = ["", ".", "bash", "../../x", "a\0b", "\u202e", "x" * 300, "everyone", "north", "nobody", TOKEN, *paths]
    others = [None, 0, 1, -5, 2**63 - 1, 10**400, 1.5, -0.0, 1e308, True, [], {}, ["sex"], {"epsilon": -1}, "\ud800"]
    way = draw.random()
    if way < 0.5:
        at = draw.randrange(1, 6)
        body = spoil_json(draw, scene.bodies[at], lambda: draw.choice([*texts, *others]))
        scene.rewrite(at, json.dumps(body))
    else:
        table = draw.choice(list(COLUMNS))
        scene.disarm()
        with suppress(sqlite3.Error):  # a key twice, or nothing where something must be
            scene.execute(
                f"UPDATE {table} SET {draw.choice(COLUMNS[table])} = ?",
                draw.choice([*texts, None, b"\xff\0", 7, -1, 2**63 - 1, 1.5]),
            )
        scene.arm()


@pytest.mark.parametrize("seed", range(3))
def test_descriptions_at_random_do_no_harm(sound: Path, released: Release, tmp_path: Path, seed: int) -> None:
    """A description of which a part was exchanged: told by verify, never a crash, and nothing else is touched."""
    draw = random.Random(seed)
    strange = ["", ".", "../../x", "x" * 300, None, 0, -5, 10**400, 1.5, True, [], {}, ["sex"], {"entry": 2}]
    for number in range(12):
        scene = Scene(sound, tmp_path / f"{number}" / "scene")
        path = scene.folder / "released.csv.json"
        spoilt = spoil_json(draw, json.loads(path.read_text()), lambda: draw.choice(strange))
        changed = json.dumps(spoilt, indent=2, ensure_ascii=False) + "\n"
        same = changed == path.read_text()
        path.write_text(changed)
        scene.before = scene.look()
        with Ledger(scene.path, wait=1) as ledger:
            assert ledger.verify().ok is same
        use(scene, released)
        shutil.rmtree(tmp_path / f"{number}")


@pytest.mark.parametrize("seed", range(3))
def test_rows_at_random_do_no_harm(sound: Path, released: Release, tmp_path: Path, seed: int) -> None:
    draw, done = random.Random(seed), set()
    for number in range(12):
        scene = Scene(sound, tmp_path / f"{number}" / "scene")
        for _ in range(draw.randrange(1, 4)):
            spoil(scene, draw)
        done |= set(use(scene, released))
        shutil.rmtree(tmp_path / f"{number}")
    assert done == {True, False}
