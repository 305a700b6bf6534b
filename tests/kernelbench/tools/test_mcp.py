"""The MCP server, with the client of the SDK, over the standard streams of a process of its own."""

import functools
import math
import os
import sys
from pathlib import Path

import anyio
import jsonschema
import pytest
from mcp import Client, StdioServerParameters, stdio_client

from kernelbench.attempt import report, warm_client
from kernelbench.tools.catalogue import Tools

ROOT = Path(__file__).parents[3]
GOOD = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x.clamp(min=0)\n"


@pytest.fixture(scope="module", autouse=True)
def runtime(tmp_path_factory):
    """A private folder for the warm server, which all tests here share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))
        yield
        warm_client.stop()


def client_of(*options):
    """A client of a new server."""
    arguments = ["-m", "kernelbench", "mcp", "--device", "cpu", "--timeout", "60", *options]
    parameters = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ), cwd=ROOT)
    return Client(stdio_client(parameters))


def with_client(test):
    """Run an asynchronous test with a client of a new server."""

    @functools.wraps(test)
    def run(tmp_path):
        async def main():
            async with client_of() as client:
                await test(client, tmp_path)

        anyio.run(main)

    del run.__wrapped__  # pytest would ask for the client as a fixture
    return run


async def call(client, tool, **arguments):
    """The structured result of a tool; an error is an AssertionError with its text."""
    found = await client.call_tool(tool, arguments)
    assert not found.is_error, found.content[0].text
    return found.structured_content


async def refused(client, tool, **arguments):
    found = await client.call_tool(tool, arguments)
    assert found.is_error
    return found.content[0].text


@with_client
async def test_the_tools_have_schemas(client, tmp_path):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == {"problems", "show", "starter", "check", "try", "time", "sol", "findings", "profile"}
    for tool in tools.values():
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        assert tool.description and tool.input_schema["type"] == "object" and tool.output_schema
    assert tools["try"].input_schema["required"] == ["file"]


@pytest.mark.slow
@with_client
async def test_an_agent_goes_from_the_problem_to_a_verdict(client, tmp_path):
    listed = await call(client, "problems", selector="1/19")
    assert listed["problems"] == [
        {"problem": "1/19", "name": "relu", "summary": listed["problems"][0]["summary"], "grade": "A"}
    ]
    assert "class Model" in (await call(client, "show", problem="1/19"))["text"]
    trivial = (await call(client, "show", problem="2/80"))["text"]  # whose outputs do not depend on the inputs
    assert "class Model" in trivial and not any(word in trivial for word in ("EXPLOITS", "Shortcuts", "TOLERANCE"))
    started = await call(client, "starter", problem="1/19", kind="cpp")
    assert started["kind"] == "cpp" and "void solution(" in started["source"]
    path = tmp_path / "1_19.py"
    path.write_text(GOOD.replace("clamp", "clump"))
    attempt = await call(client, "try", file=str(path))
    jsonschema.validate(attempt, report.schema())
    assert attempt["status"] == "runtime_error" and attempt["error"]["line"] == 3
    path.write_text(GOOD)
    checked = await call(client, "check", file=str(path), prove_speedup=1000)
    assert checked["passes"] in (False, None) and checked["attempt"]["correct"]
    assert "median" in (await call(client, "time", file=str(path)))["text"]
    assert "GB/s" in (await call(client, "profile", file=str(path)))["text"]


@pytest.mark.slow
@with_client
async def test_bounds_and_findings_need_no_evaluation(client, tmp_path):
    bound = await call(client, "sol", problem="1/1", device="h100-sxm")
    assert bound["reports"][0]["theoretical_runtime_ms"] > 0 and "Speed" in bound["text"]
    path = tmp_path / "own.py"
    path.write_text("import ctypes\n" + GOOD)
    assert {"line", "rule", "explanation"} <= set((await call(client, "findings", file=str(path)))["findings"][0])


@pytest.mark.slow
@with_client
async def test_mistakes_are_told_and_the_server_goes_on(client, tmp_path):
    assert "no problem matches '9/99'" in await refused(client, "show", problem="9/99")
    assert "no source of a solution" in await refused(client, "findings", file=str(tmp_path / "gone.py"))
    assert "no such file" in await refused(client, "time", file=str(tmp_path / "gone.py"))
    assert "kind" in await refused(client, "starter", problem="1/19", kind="rust")
    for limit in ("min_speedup", "prove_speedup"):
        assert "from 0 on" in await refused(client, "check", file="x.py", **{limit: -1})
        with pytest.raises(ValueError, match="from 0 on, and is nan"):  # a client of another language can send it
            Tools(None, {}, 0).check("x.py", **{limit: math.nan})
    for mhz in (0, 5e-324):
        assert "MHz from 1 on" in await refused(client, "sol", problem="1/1", device="h100-sxm", clock_mhz=mhz)
    missing = await call(client, "try", file=str(tmp_path / "gone.py"))
    assert missing["exit_status"] == 2 and missing["status"] == "not_evaluated"
    assert (await call(client, "check", file=str(tmp_path / "gone.py")))["passes"] is None


@pytest.mark.slow
def test_an_error_with_a_name_that_is_no_text_is_told_and_the_server_goes_on(tmp_path):
    """The server ended: half a character is no JSON."""
    folder = tmp_path / "bad\udcff"
    folder.mkdir()

    async def main():
        with anyio.fail_after(60):
            async with client_of("--files", str(folder)) as client:
                assert "bad\\udcff, and no other files are taken" in await refused(client, "findings", file=str(ROOT))
                assert (await call(client, "problems", selector="1/19"))["problems"]

    anyio.run(main)


@pytest.mark.parametrize("name", ["findings", "try_", "check", "time", "profile"])
def test_files_elsewhere_are_not_taken_where_a_folder_is_named(tmp_path, name):
    """A model without files of its own was told lines of any source of the user's."""
    own, other = tmp_path / "own", tmp_path / "other.py"
    own.mkdir()
    other.write_text("API_KEY = 'secret' (\n")
    (own / "link.py").symlink_to(other)
    tool = getattr(Tools(None, {"device": "cpu"}, 60, own), name)
    for file in (other, own / "link.py", own / "../other.py"):
        with pytest.raises(ValueError, match="no other files are taken"):
            tool(str(file))
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        tool(f"{tmp_path}/missing/../own/link.py")


def test_a_file_of_the_folder_that_is_named_is_taken(tmp_path):
    file = tmp_path / "kernel.py"
    file.write_text(GOOD)
    assert Tools(None, {"device": "cpu"}, 60, tmp_path).findings(str(file)) == {"findings": []}
