"""Speed of the page of a large run in a headless Chromium.

    python scripts/bench/viewer.py --results 10000 --out viewer.json

Makes a run of that many results (40 attempts at each of 250 problems; samples, messages and
sources as in real ones), writes its page, and prints how long that took and how large the page is;
then, for the median of ``--repeats`` openings, milliseconds from opening it to the table on the
screen and to all rows in the document, and from a key or a click to the next picture for typing
into the filter, sorting, jumping to the last row and opening a candidate. Needs selenium, chromium and chromedriver.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import random
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from selenium import webdriver

from kernelbench.report import page
from kernelbench.run import Run

_ROOT = Path(__file__).parents[2]
_FLAGS = ("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking")

# Each runs ACTION and says how many milliseconds later its picture is there.
_TIMED = """const done = arguments[arguments.length - 1]; const start = performance.now(); ACTION;
const shown = () => READY ? requestAnimationFrame(() => setTimeout(() => done(performance.now() - start))) : setTimeout(shown, 1);
shown();"""  # noqa: E501
_ALL_ROWS = """const done = arguments[0];
const wait = () => document.querySelector('tbody.waiting') ? setTimeout(wait, 1) : done(performance.now()); wait();"""
_ACTIONS = {
    "filter_ms": ("const f = document.querySelector('#filter'); f.value = 'relu'; f.dispatchEvent(new Event('input'))",
                  "document.querySelector('#count').textContent.includes(' of ')"),
    "clear_ms": ("const f = document.querySelector('#filter'); f.value = ''; f.dispatchEvent(new Event('input'))",
                 "!document.querySelector('#count').textContent.includes(' of ')"),
    "sort_ms": ("document.querySelector('th.k-speedup button').click()",
                "document.querySelector('th.k-speedup').ariaSort"),
    "last_row_ms": ("document.body.dispatchEvent("
                    "new KeyboardEvent('keydown', {key: 'G', bubbles: true}))", "document.querySelector('tr.current')"),
    "open_ms": ("document.querySelector('tr.current a').click()", "document.querySelector('#panel .source')"),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, help="write the figures as JSON, too")
    parser.add_argument("--keep", type=Path, help="keep the page there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made = large_run(Path(folder) / "large", options.results)
        begin = time.perf_counter()
        report = Path(folder) / "report.html"
        report.write_text(page.report([Run.load(made)]), encoding="utf-8")
        figures = {"results": options.results, "write_s": time.perf_counter() - begin,
                   "page_mb": report.stat().st_size / 1e6}  # fmt: skip
        openings = [opening(report) for _ in range(options.repeats)]
        if options.keep:
            shutil.copy(report, options.keep)
    figures |= {name: statistics.median(one[name] for one in openings) for name in openings[0] if name != "browser"}
    figures["browser"] = openings[0]["browser"]
    print(json.dumps(figures, indent=2))
    if options.out:
        options.out.write_text(json.dumps(figures, indent=2) + "\n")


def large_run(path: Path, count: int) -> Path:
    """Records made from those in results/h100, with other times, statuses and sources."""
    log = (_ROOT / "results" / "h100" / "references" / "results.jsonl").read_text().splitlines()
    broken = (_ROOT / "results" / "h100" / "examples" / "results.jsonl").read_text().splitlines()
    templates = [json.loads(line) for line in log]
    failures = [record for record in map(json.loads, broken) if record["status"] != "ok"]
    sources = [file.read_text() for file in (_ROOT / "examples").rglob("*.py")]
    draw = random.Random(0)
    made = Run.create(path, json.loads((_ROOT / "results" / "h100" / "references" / "config.json").read_text()))
    (path / "sources").mkdir()
    with (path / "results.jsonl").open("w") as file:
        for number in range(count):
            record = attempt(templates[number % len(templates)], number // len(templates), failures, draw)
            source = f"# attempt {number}\n{draw.choice(sources)}".encode()
            record["solution"]["sha256"] = hashlib.sha256(source).hexdigest()
            (path / "sources" / f"{record['solution']['sha256']}.py").write_bytes(source)
            file.write(json.dumps(record) + "\n")
    return made.path


def attempt(template: dict, sample: int, failures: list[dict], draw: random.Random) -> dict:
    record = json.loads(json.dumps(template))
    record["solution"] |= {
        "name": f"{record['problem'].replace('/', '_')}_s{sample}.py",
        "sample": sample,
        "kind": "py",
    }
    if draw.random() < 0.4:
        failure = draw.choice(failures)
        kept = {key: failure[key] for key in ("status", "message", "log", "rule")}
        return record | kept | {"timing": None, "baselines": {}, "speedup": None, "gflops": None, "gbps": None}
    factor = math.exp(draw.gauss(0, 0.5))
    record["timing"]["samples_ms"] = [
        round(s / factor * math.exp(draw.gauss(0, 0.01)), 6) for s in record["timing"]["samples_ms"]
    ]
    record["timing"]["median_ms"] = statistics.median(record["timing"]["samples_ms"])
    record["speedup"] = record["baselines"]["eager"]["median_ms"] / record["timing"]["median_ms"]
    return record


def opening(report: Path) -> dict:
    """The page opened once, in a browser that has seen nothing before."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for flag in (*_FLAGS, f"user-data-dir={profile}", "window-size=1400,900"):
            options.add_argument(f"--{flag}")
        browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
        try:
            browser.get(report.as_uri())
            found = {"browser": f"Chromium {browser.capabilities['browserVersion']}"}
            found["open_page_ms"] = browser.execute_async_script(
                "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => "
                "done(Math.max(...performance.getEntriesByType('paint').map((p) => p.startTime), "
                "performance.getEntriesByType('navigation')[0].loadEventEnd))))"
            )
            found["all_rows_ms"] = browser.execute_async_script(_ALL_ROWS)
            for name, (action, ready) in _ACTIONS.items():
                found[name] = browser.execute_async_script(_TIMED.replace("ACTION", action).replace("READY", ready))
            return found
        finally:
            browser.quit()


if __name__ == "__main__":
    main()
