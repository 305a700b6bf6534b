"""Claims beside measurements: what is found of each, inflation, fallback, and where the speed comes from."""

import hashlib
import json

import logs
import pytest
from click.testing import CliRunner

from harness.result import Status
from kernelbench.cli import main
from kernelbench.formats import claims
from kernelbench.formats.claims import Claim
from kernelbench.regrade.rows import rows_of
from kernelbench.regrade.summary import best_of_all, summary
from kernelbench.review.record import Review, append

REFERENCE = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): return torch.relu(x)\n"
SOURCE = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return own(x)  # {}\n"


@pytest.fixture
def archive(tmp_path):
    """``add(problem, claimed, result)`` writes a kernel, its claim and its result; ``run()`` is the run of them all."""

    class Archive:
        made, results = [], []

        def add(self, problem, claimed, measured=None, *, source=None, status=Status.OK, band=None, **fields):
            sample = len(self.made)
            name = f"level1/{problem[2:]}_s{sample}.py"
            source = source or SOURCE.format(sample)
            path = tmp_path / "solutions" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source)
            digest = hashlib.sha256(source.encode()).hexdigest()
            self.made.append(Claim(problem, name, digest, {"eager": claimed} if claimed else {}))
            make = logs.judged if measured else logs.result
            one = make(problem, *[measured] * bool(measured), sample=sample, name=name, status=status, **fields)
            one.solution |= {"sha256": digest, "language": "cuda"}
            one.workload = {"name": "full"}
            one.device = {"type": "cuda", "name": "NVIDIA H100 80GB HBM3"}
            self.results.append((one, band))
            return one

        def run(self, name="run", results=None):
            (tmp_path / claims.LOG).write_text(claims.to_text(self.made))
            chosen = self.results if results is None else results
            made = logs.run(tmp_path / name, *(one for one, _ in chosen), solutions=str(tmp_path / "solutions"))
            (made.path / "references").mkdir()
            for problem in {claim.problem for claim in self.made}:
                (made.path / "references" / f"{problem.replace('/', '_')}.py").write_text(REFERENCE)
            for one, band in chosen:
                if band:
                    sha256, solution = one.solution["sha256"], one.solution["name"]
                    append(made.path, Review(one.problem, solution, sha256, "m", *band, "so it is", 0.0, ""))
            return made

    return Archive()


def regraded(archive, **kwargs):
    return rows_of(archive.run(**kwargs), archive.made)


GAMING = ("gaming", "fake_transpose")
FINE = ("no_issues", "")


def test_claims_stand_beside_what_was_found(archive):
    archive.add("1/1", 4.0, 2.0)
    archive.add("1/2", 3.0, status=Status.WRONG_VALUE)
    right, wrong = regraded(archive)
    assert (right.status, right.settled, right.inflation) == ("ok", 2.0, 2.0)
    assert (wrong.status, wrong.settled, wrong.inflation) == ("wrong_value", None, None)


def test_every_kernel_has_one_status_and_they_add_up(archive):
    for number, status in enumerate((Status.OK, Status.CRASHED, Status.TIMEOUT, Status.WRONG_VALUE), start=1):
        archive.add(f"1/{number}", 2.0, status=status)
    found = summary(regraded(archive, results=archive.results[:3]))
    assert found["statuses"] == {"ok": 1, "crashed": 1, "timeout": 1, "not evaluated": 1}
    assert sum(found["statuses"].values()) == found["kernels"] == 4


def test_inflation_is_over_what_is_right_and_over_all_with_failures_as_one(archive):
    archive.add("1/1", 4.0, 2.0)
    archive.add("1/2", 9.0, status=Status.WRONG_VALUE)
    archive.add("1/3", None, 3.0)  # no claim
    archive.add("1/4", 8.0, 2.0, verdict="unstable")  # nobody knows
    found = summary(regraded(archive))["inflation"]["total"]
    assert (found["kernels"], found["correct"], found["compared"], found["unsettled"]) == (3, 2, 1, 1)
    assert found["inflation"] == pytest.approx(2.0)
    assert found["inflation_over_all"] == pytest.approx(6.0 / 2.0**0.5)  # (4 * 9)^(1/2) over (2 * 1)^(1/2)


def test_a_changed_source_is_no_evidence(archive):
    one = archive.add("1/1", 4.0, 2.0)
    one.solution["sha256"] = "another"
    (row,) = regraded(archive)
    assert row.result is None and "another content" in row.why


def test_a_rejected_best_falls_back_to_the_next_honest_one(archive):
    archive.add("1/1", 9.0, 8.0, band=GAMING)
    archive.add("1/1", 7.0, status=Status.WRONG_VALUE)
    archive.add("1/1", 5.0, 4.0, status=Status.REJECTED, rule="library_only")
    archive.add("1/1", 3.0, 2.0, band=FINE)
    archive.add("1/1", 2.0, 1.5, band=FINE)
    archive.add("1/2", 2.0, 3.0, band=GAMING)
    found = summary(regraded(archive))["fallback"]
    walk = found["problems"]["1/1"]
    assert walk["accepted"] == "level1/1_s3.py"
    assert (walk["examined"], walk["claimed"], walk["settled"]) == (4, 3.0, 2.0)
    assert [one["why"] for one in walk["passed_over"]] == ["original_gaming", "wrong_value", "library_only"]
    assert found["problems"]["1/2"]["accepted"] is None
    assert (found["accepted"], found["fallen_back"], found["without"], found["examined"]) == (1, 1, 1, 5)


def test_the_filtered_figure_is_of_the_next_sample(archive):
    archive.add("1/1", 9.0, 8.0, band=GAMING)
    archive.add("1/1", 3.0, 2.0, band=FINE)
    found = summary(regraded(archive))
    assert found["filterings"]["none"]["geometric_mean"] == pytest.approx(8.0)
    assert found["filterings"]["all"]["geometric_mean"] == pytest.approx(2.0)
    assert found["bands"]["no_issues"] == found["bands"]["original_gaming"] == 1 and sum(found["bands"].values()) == 2
    assert found["categories"] == {"fake_transpose": 1}


def test_the_best_of_all_runs(archive):
    archive.add("1/1", 2.0, 2.0)
    archive.add("1/1", 2.0, 3.0)
    archive.add("1/2", 2.0, 4.0)
    runs = [regraded(archive, name=name, results=those) for name, those in
            (("a", archive.results[:1]), ("b", archive.results[1:]))]  # fmt: skip
    found = best_of_all(runs)["none"]
    assert found["solved"] == 2 and found["geometric_mean"] == pytest.approx(12.0**0.5)


def finding(rule, code=""):
    return {"integrity": {"findings": [{"rule": rule, "line": 3, "code": code}]}}


@pytest.mark.parametrize(
    "fields, trait",
    [
        (finding("lower_precision", ".half()"), "reduced_precision"),
        (finding("global_settings", "torch.backends.cuda.matmul.allow_tf32"), "reduced_precision"),
        (finding("cuda_graph", "torch.cuda.CUDAGraph"), "graph_replay"),
        (finding("memory_format", "torch.channels_last"), "memory_format"),
        ({"integrity": {"own_share": 0.0}}, "library_only"),
    ],
)
def test_traits_and_their_evidence(archive, fields, trait):
    archive.add("1/1", 2.0, 2.0, **fields)
    (row,) = regraded(archive)
    assert row.categories == [trait] and row.traits[trait]


def test_a_setting_that_is_not_of_precision_is_no_trait(archive):
    archive.add("1/1", 2.0, 2.0, **finding("global_settings", "torch.backends.cudnn.benchmark"))
    assert regraded(archive)[0].categories == ["own_kernels"]


def test_the_reference_again_is_unchanged(archive):
    archive.add("1/1", 2.0, 2.0, source=REFERENCE.replace("Model", "ModelNew"))
    assert "unchanged" in regraded(archive)[0].traits


def test_another_definition_or_workload_is_of_other_sizes(archive):
    archive.add("1/1", 2.0, 2.0)
    archive.add("1/2", 2.0, 2.0).workload["name"] = "small"
    archive.made[0] = Claim(**{**vars(archive.made[0]), "reference_sha256": "of another module"})
    assert [set(row.traits) for row in regraded(archive)] == [{"other_sizes"}] * 2


def test_the_same_definition_is_of_the_same_sizes(archive):
    archive.add("1/1", 2.0, 2.0)
    digest = hashlib.sha256(REFERENCE.encode()).hexdigest()
    archive.made[0] = Claim(**{**vars(archive.made[0]), "reference_sha256": digest})
    assert not regraded(archive)[0].traits


def regrade(*arguments):
    return CliRunner().invoke(main, ["regrade", *map(str, arguments)])


@pytest.fixture
def run(archive):
    archive.add("1/1", 4.0, 2.0, sol={"t_sol_fp16_ms": 0.1}, band=FINE)
    archive.add("1/2", 3.0, status=Status.WRONG_VALUE, message="<script>")
    return archive.run()


def test_terminal_markdown_html_and_json_say_the_same(run, tmp_path):
    data = json.loads(regrade(run.path, "--json").stdout)["runs"][0]
    assert data["inflation"]["total"]["inflation"] == pytest.approx(2.0) and len(data["rows"]) == 2
    for form in ("terminal", "markdown", "html"):
        done = regrade(run.path, "--format", form)
        assert done.exit_code == 0 and "2.00x" in done.stdout and "wrong_value" in done.stdout
    assert regrade(run.path, "-o", tmp_path / "a.html").exit_code == 0
    page = (tmp_path / "a.html").read_text()
    assert "speed of light</text>" in page and "<script" not in page


def test_without_claims_it_says_where_they_are_looked_for(run, tmp_path):
    (tmp_path / claims.LOG).unlink()
    done = regrade(run.path)
    assert done.exit_code == 2 and "--claims FILE" in done.output


def test_claims_behind_a_link_in_a_run_are_not_read(run, tmp_path):
    config = json.loads((run.path / "config.json").read_text())
    assert regrade(run.path).exit_code == 0
    (run.path / "x").symlink_to(tmp_path)
    config["solutions"] = f"{run.path}/x/{config['solutions'].rpartition('/')[2]}"
    (run.path / "config.json").write_text(json.dumps(config))
    done = regrade(run.path)
    assert done.exit_code == 2 and "--claims FILE" in done.output


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"problem": 1}', '{"problem": "1/1", "solution": "a", "sha256": "b", "ms": "x"}']
)
def test_a_damaged_claim_is_named(run, tmp_path, line):
    with (tmp_path / claims.LOG).open("a") as log:
        log.write(line + "\n")
    done = regrade(run.path)
    assert done.exit_code == 2 and "line 3, is no claim" in done.output


def test_shares_at_a_ratio_count_what_reaches_it(run):
    """Of two problems one has a claim of 4 and one of 3; one of 2 is measured, and a bound of 10."""
    lines = regrade(run.path).stdout.splitlines()
    shares = {name: next(line for line in lines if line.startswith(name)).split()[-6:]
              for name in ("claimed ", "measured", "speed of light")}  # fmt: skip
    assert shares["claimed "] == ["1.000"] * 4 + ["0.500", "0.000"]
    assert shares["measured"] == ["0.500"] * 4 + ["0.000", "0.000"]
    assert shares["speed of light"] == ["0.500"] * 6


@pytest.fixture
def two_baselines(archive):
    """A kernel with a claim of 3 over compile, that is 2 times as fast as compile and 8 times as eager."""
    one = archive.add("1/1", 4.0, 8.0)
    compiled = {"speedup": 2.0, "interval": [1.98, 2.02], "median_ms": one.timing["median_ms"] * 2}
    one.baselines["compile"] = {**one.baselines["eager"], **compiled}
    archive.made[0] = Claim(**{**vars(archive.made[0]), "speedups": {"compile": 3.0}})
    return archive


def test_figures_of_a_row_are_over_the_baseline_of_the_claim(two_baselines):
    """Speedup and interval were over the run's first baseline, beside a settled speedup over the claim's."""
    (row,) = regraded(two_baselines)
    data = row.to_json()
    assert row.inflation == 1.5 and row.settled == data["settled_speedup"] == data["speedup"] == 2.0
    assert (data["interval"], data["verdict"]) == ({"low": 1.98, "high": 2.02}, "faster")


def test_figures_of_all_rows_are_over_the_baselines_of_the_claims(two_baselines):
    """Curves had claims over one baseline beside measurements over another."""
    rows = regraded(two_baselines)
    found = summary(rows)
    assert found["curves"]["claimed"][-1][0] == 3.0
    assert found["curves"]["measured"][-1][0] == found["curves"]["filtered"][-1][0] == 2.0
    for figures in (*found["filterings"].values(), *best_of_all([rows]).values()):
        assert figures["geometric_mean"] == pytest.approx(2.0)


def test_a_claim_over_a_baseline_that_was_not_measured_here_is_beside_the_runs_first(two_baselines):
    two_baselines.made[0] = Claim(**{**vars(two_baselines.made[0]), "speedups": {"tensorrt": 3.0}})
    (row,) = regraded(two_baselines)
    assert row.settled == row.to_json()["speedup"] == 8.0
