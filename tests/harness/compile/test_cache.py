"""The build cache: one entry a key, shared by many, bounded, and not believed where it is damaged."""

import contextlib
import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from harness.compile.cache import Cache, CacheError, built_bytes, key_of
from harness.process.owned_folders import KeptFolders
from harness.solution.includes import digest_of

ROOT = Path(__file__).parents[3]


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "cache")


def put(cache, key, content=b"built", age_s=0):
    work = cache.root.parent / f"{key}.so"
    work.write_bytes(content)
    folder = cache.put(key, [work])
    os.utime(folder / "uses", (time.time() - age_s,) * 2)
    return folder


def test_what_was_put_is_found_by_its_key_alone(cache):
    assert cache.get(key_of("a")) is None
    put(cache, key_of("a"))
    assert (cache.get(key_of("a")) / f"{key_of('a')}.so").read_bytes() == b"built"
    assert cache.get(key_of("b")) is None
    assert key_of("a", "bc") != key_of("ab", "c")


def test_an_entry_travels_to_the_cache_of_another_host(cache, tmp_path):
    put(cache, "k", b"built here")
    other = Cache(tmp_path / "other")
    for _ in range(2):
        other.add("k", cache.contents("k"))
    assert (other.get("k") / "k.so").read_bytes() == b"built here"
    assert cache.contents("unknown") is None


def test_a_mark_is_a_hint_that_goes_with_the_rest(cache):
    assert not cache.is_marked("m")
    cache.mark("m")
    assert cache.is_marked("m") and cache.statistics().entries == 0
    cache.clear()
    assert not cache.is_marked("m")


def test_the_first_of_two_builders_wins_and_neither_fails(cache):
    first = put(cache, "k", b"first")
    assert put(cache, "k", b"second") == first
    assert (first / "k.so").read_bytes() == b"first"


def test_many_processes_build_a_key_once_and_all_get_it_whole(cache, tmp_path):
    code = """
import sys, time
from pathlib import Path
from harness.compile.cache import Cache
cache, log = Cache(Path(sys.argv[1])), Path(sys.argv[2])
with cache.building("k"):
    if cache.get("k") is None:
        with open(log, "a") as file: file.write("built\\n")
        time.sleep(0.2)
        work = log.parent / f"work{sys.argv[3]}" / "k.so"
        work.parent.mkdir()
        work.write_bytes(b"x" * 1_000_000)
        cache.put("k", [work])
assert (cache.get("k") / "k.so").stat().st_size == 1_000_000
"""
    arguments = [str(cache.root), str(tmp_path / "log")]
    processes = [
        subprocess.Popen([sys.executable, "-c", code, *arguments, str(number)], cwd=ROOT) for number in range(6)
    ]
    assert [process.wait() for process in processes] == [0] * 6
    assert (tmp_path / "log").read_text() == "built\n"


@pytest.mark.parametrize("damage", ["content", "missing file", "manifest", "no manifest"])
def test_a_damaged_entry_is_none(cache, damage):
    folder = put(cache, "k")
    if damage == "content":
        (folder / "k.so").write_bytes(b"forged")
    elif damage == "missing file":
        (folder / "k.so").unlink()
    elif damage == "manifest":
        (folder / "manifest.json").write_text("[]")
    else:
        (folder / "manifest.json").unlink()
    assert cache.get("k") is None
    put(cache, "k", b"new")
    assert (cache.get("k") / "k.so").read_bytes() == b"new"


def test_no_lock_is_left_of_builds_and_one_is_held_by_one_at_a_time(cache):
    """Each request of a candidate, refused or not, left a file that nobody counted."""
    held, most = [0], [0]

    def build():
        for _ in range(40):
            with cache.building("k"):
                held[0] += 1
                most[0] = max(most[0], held[0])
                time.sleep(0.0005)
                held[0] -= 1

    threads = [threading.Thread(target=build) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] and not [*(cache.root / "locks").iterdir()]


def test_a_link_in_a_files_place_is_refused(cache, tmp_path):
    (tmp_path / "secret").write_text("not yours")
    (tmp_path / "k.so").symlink_to(tmp_path / "secret")
    with pytest.raises(CacheError):
        cache.put("k", [tmp_path / "k.so"])
    assert cache.get("k") is None


def test_it_shrinks_to_its_bound_oldest_use_first(cache):
    for key, age_s in (("old", 9000), ("older", 10000), ("recent", 8000)):
        put(cache, key, b"x" * 100, age_s)
    cache.trim(limit=200)
    assert cache.get("older") is None and cache.get("old") and cache.get("recent")


def test_what_was_used_a_moment_ago_is_not_removed_to_make_room(cache):
    put(cache, "waiting")
    cache.trim(limit=0)
    assert cache.get("waiting")


def test_a_use_makes_an_entry_young_and_is_counted(cache):
    put(cache, "used", age_s=10000)
    put(cache, "unused", age_s=9000)
    cache.get("used")
    assert cache.statistics().uses == 1
    cache.trim(limit=5)
    assert cache.get("used") and cache.get("unused") is None


def test_clearing_tells_what_was_there_and_leaves_nothing(cache):
    put(cache, "k", b"12345")
    removed = cache.clear()
    assert (removed.entries, removed.size_bytes) == (1, 5)
    assert cache.statistics().entries == 0 and cache.get("k") is None
    assert not [path for path in cache.root.rglob("*.so")]


@pytest.mark.slow
def test_a_private_folder_that_a_candidate_nested_deep_harms_nobody(cache):
    code = (
        "import os, sys\nos.chdir(sys.argv[1])\n"
        "for _ in range(1500): os.mkdir('d'); os.chdir('d')\n"
        "open('file', 'wb').write(bytes(10_000_000))"
    )
    folder = cache.private_folder("triton")
    subprocess.run([sys.executable, "-c", code, folder], check=True)
    assert cache.statistics().size_bytes < 10_000_000  # the file is too deep to be counted
    cache.trim()
    assert KeptFolders([folder], cache.root).close()[0] > 60 and not folder.exists()
    subprocess.run([sys.executable, "-c", code, cache.private_folder("triton")], check=True)
    cache.clear()
    assert not folder.exists() and cache.statistics().size_bytes == 0


def test_a_private_folder_is_the_same_each_time_and_counts(cache):
    folder = cache.private_folder("triton")
    (folder / "kernel").mkdir()
    (folder / "kernel" / "a.cubin").write_bytes(b"x" * 100_000)
    assert cache.private_folder("triton") == folder and cache.statistics().size_bytes >= 100_000
    with contextlib.closing(KeptFolders([folder], cache.root)):
        cache.trim(limit=1000)
        assert folder.exists()  # a candidate has it
    cache.trim(limit=1000)
    assert not folder.exists()


def test_private_folders_shrink_to_the_bound_though_nothing_is_built(cache, monkeypatch):
    """Each run of a candidate left 256 MB more where no library was put into the cache."""
    monkeypatch.setenv("KERNELBENCH_CACHE_GB", "0.0005")
    monkeypatch.setattr("harness.compile.cache._TRIM_S", 0)
    for key in map(str, range(20)):
        (cache.private_folder(key) / "a.cubin").write_bytes(b"x" * 100_000)
    assert cache.statistics().size_bytes <= 700_000
    assert (cache.root / "private" / "19").exists() and not (cache.root / "private" / "0").exists()


def test_empty_files_of_candidates_count_too(cache):
    """To count 5,000 of each of 40 candidates took 2 s, and each build did so."""
    for number in range(100):
        (cache.private_folder("triton") / str(number)).touch()
    assert cache.statistics().size_bytes >= 100 * (64 << 10)


def test_a_candidate_that_dates_its_folder_ahead_goes_first(cache):
    for key, ahead_s in (("honest", 0), ("ahead", 1e6)):
        (cache.private_folder(key) / "a.cubin").write_bytes(b"x" * 100_000)
        os.utime(cache.root / "private" / key, (time.time() + ahead_s,) * 2)
    cache.trim(limit=150_000)
    assert [folder.name for folder in (cache.root / "private").iterdir()] == ["honest"]


def test_a_full_cache_is_trimmed_before_it_takes_more(cache, monkeypatch):
    monkeypatch.setenv("KERNELBENCH_CACHE_GB", "0")
    put(cache, "old", b"x" * 100, age_s=9000)
    monkeypatch.setattr("harness.compile.cache._TRIM_S", 0)
    monkeypatch.setattr("harness.compile.cache._copy_plain_file", no_space)
    with pytest.raises(CacheError, match="No space left"):
        put(cache, "new")
    assert cache.get("old") is None


def no_space(source, target):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_private_folder_that_a_killed_run_left_too_large_is_swept(cache, monkeypatch):
    monkeypatch.setattr("harness.process.owned_folders._MAX_KEPT_FILES", 5)
    for key, files in (("fits", 3), ("overgrown", 9), ("held", 9)):
        for number in range(files):
            (cache.private_folder(key) / str(number)).touch()
    with contextlib.closing(KeptFolders([cache.root / "private" / "held"], cache.root)):
        cache.sweep()
        assert sorted(folder.name for folder in (cache.root / "private").iterdir()) == ["fits", "held"]


def test_a_builder_that_died_leaves_nothing_for_long(cache):
    leftover = cache.root / "work" / "dead"
    leftover.mkdir()
    os.utime(leftover, (time.time() - 2 * 86400,) * 2)
    cache.trim()
    assert not leftover.exists()


def test_a_cache_that_cannot_be_written_says_so_and_what_to_do(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CacheError, match="cannot write the build cache in .*KERNELBENCH_CACHE"):
        Cache(tmp_path / "file" / "cache")


def test_a_disk_that_fills_up_is_an_error_of_the_cache_and_leaves_no_entry(cache, tmp_path):
    (tmp_path / "k.so").write_bytes(b"x" * 100_000)
    code = """
import resource, signal, sys
from pathlib import Path
from harness.compile.cache import Cache, CacheError
cache = Cache(Path(sys.argv[1]))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))  # writing more fails, as on a full disk
try:
    cache.put("k", [Path(sys.argv[2])])
except CacheError as error:
    print(error)
"""
    command = [sys.executable, "-c", code, str(cache.root), str(tmp_path / "k.so")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert "cannot write the build cache" in done.stdout and "kb cache clear" in done.stdout, done.stderr
    assert cache.get("k") is None and not list((cache.root / "work").iterdir())


def test_a_bound_that_is_no_number_is_told(monkeypatch, cache):
    monkeypatch.setenv("KERNELBENCH_CACHE_GB", "lots")
    with pytest.raises(CacheError, match="'lots', not a number"):
        cache.statistics()


def test_the_digest_is_of_the_content(tmp_path):
    (tmp_path / "a").write_bytes(b"same")
    (tmp_path / "b").write_bytes(b"same")
    assert digest_of(tmp_path / "a") == digest_of(tmp_path / "b")


@pytest.mark.parametrize("kind", ["nothing", "a folder", "a link", "too large"])
def test_what_is_no_library_to_keep_is_the_builds_fault_with_the_reason(tmp_path, monkeypatch, kind):
    monkeypatch.setattr("harness.compile.cache.MAX_BUILT_BYTES", 10)
    library = tmp_path / "made.so"
    if kind == "a folder":
        library.mkdir()
    elif kind == "a link":
        library.symlink_to("/etc/passwd")
    elif kind == "too large":
        library.write_bytes(bytes(11))
    reason = "made.so has 11 bytes; the limit is 10" if kind == "too large" else "the build left no"
    with pytest.raises(ValueError, match=reason):
        built_bytes(library)


@pytest.mark.parametrize(("free", "share"), [(800, 100), (300, 64), (100, 25), (0, 0)])
def test_one_candidate_may_add_an_eighth_of_what_is_free_and_a_library_where_there_is_little(
    tmp_path, monkeypatch, free, share
):
    """It was 64 MiB whatever was free: candidates filled the disk, and their neighbours were skipped."""
    free, share = free << 20, share << 20
    cache = Cache(tmp_path)
    monkeypatch.setattr("harness.compile.cache.free_bytes", lambda folder: free)
    assert cache.share_bytes() == share


def test_where_little_is_free_room_is_made_before_the_next_build(cache, monkeypatch):
    monkeypatch.setattr("harness.compile.cache.free_bytes", lambda folder: 100)
    put(cache, "old", b"x" * 300, age_s=60)
    put(cache, "new", b"x" * 100, age_s=30)
    assert cache.share_bytes() == 25
    assert cache.get("old") is None and cache.get("new")


def test_what_is_about_to_be_used_is_renewed_or_known_to_be_gone(cache):
    put(cache, "k", age_s=9000)
    assert cache.renew("k") and not cache.renew("other")
    cache.trim(limit=0)
    assert cache.get("k") and cache.statistics().uses == 1  # to renew is none


def test_a_library_to_keep_is_told_by_its_size(tmp_path):
    (tmp_path / "made.so").write_bytes(bytes(10))
    assert built_bytes(tmp_path / "made.so") == 10
