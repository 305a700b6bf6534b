"""nvcc with its host and its device passes side by side. A script: ``passes.py NVCC ARGUMENTS...``.

nvcc reads a source once for the host (cudafe++) and once for every architecture
(cicc), one after the other. Asked with -dryrun it prints the commands instead of
running them; here each runs as soon as the files that it reads are there. A
command list in another form than expected is left to nvcc itself.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

_VARIABLE = re.compile(r"(PATH|CICC_PATH|NVVMIR_LIBRARY_DIR|LD_LIBRARY_PATH|TOP)=\s*(\S+)")
_TEMPORARY = re.compile(r"[^\s\"'=,]*tmpxft_[^\s\"',]+")
_MODULE_ID = re.compile(r"[^\s\"']*\.module_id")
_COMMANDS = ("gcc", "g++", "cudafe++", "ptxas", "fatbinary")


def main(nvcc: str, *arguments: str) -> int:
    """Compile as nvcc would, its passes at once where its commands are understood; return the exit status."""
    planned = plan(nvcc, arguments)
    if planned is None:
        os.execvp(nvcc, [nvcc, *arguments])
    return run(*planned)


def plan(nvcc: str, arguments: tuple[str, ...]) -> tuple[dict[str, str], list[str]] | None:
    """The environment and the shell commands of one compilation; None where they are not understood."""
    dry = subprocess.run([nvcc, "-dryrun", *arguments], capture_output=True, text=True)
    environment, commands = dict(os.environ), []
    for line in dry.stderr.splitlines():
        line = line.removeprefix("#$ ")
        if match := _VARIABLE.fullmatch(line.strip()):
            environment[match[1]] = match[2]
        elif _tool(line) in (*_COMMANDS, "cicc"):
            commands.append(line)
    tools = [_tool(command) for command in commands]
    if dry.returncode != 0 or "cudafe++" not in tools or "cicc" not in tools or not _compiles(commands[-1]):
        return None
    # Both passes name what is local to the file after this identifier. cudafe++ would make one and cicc wait for it.
    (identifier,) = {match[0] for command in commands for match in _MODULE_ID.finditer(command)} or {None}
    if identifier is None:
        return None
    with open(identifier, "w", encoding="utf-8") as file:
        file.write(f"_{hashlib.sha256(repr(arguments).encode()).hexdigest()[:16]}_kb")
    return environment, [command.replace("--gen_module_id_file", "") for command in commands]


def run(environment: dict[str, str], commands: list[str]) -> int:
    """Run the commands, each after those that make its files, the last one after all; the first failure's output."""
    waits = _dependencies(commands)
    processes: list[subprocess.Popen] = []
    done: dict[int, Future] = {}

    def execute(index: int) -> tuple[int, str]:
        process = subprocess.Popen(
            commands[index], shell=True, env=environment, text=True, errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        processes.append(process)
        output, _ = process.communicate()
        return process.returncode, output

    with ThreadPoolExecutor(len(commands)) as pool:
        finished: set[int] = set()
        while len(finished) < len(commands):
            for index in range(len(commands)):
                if index not in done and waits[index] <= finished:
                    done[index] = pool.submit(execute, index)
            wait([done[index] for index in done if index not in finished], return_when=FIRST_COMPLETED)
            for index in sorted(set(done) - finished):
                if not done[index].done():
                    continue
                finished.add(index)
                code, output = done[index].result()
                sys.stderr.write(output)
                if code != 0:
                    for process in processes:
                        process.kill()
                    return code
    return 0


def _dependencies(commands: list[str]) -> list[set[int]]:
    """Return, for each command, the earlier ones that first name a file which it names."""
    maker: dict[str, int] = {}
    waits: list[set[int]] = []
    for index, command in enumerate(commands):
        files = {name for name in _TEMPORARY.findall(command) if not name.endswith(".module_id")}
        waits.append({maker[name] for name in files if name in maker})
        for name in files:
            maker.setdefault(name, index)
    waits[-1] = set(range(len(commands) - 1))  # it includes what the others made
    return waits


def _tool(command: str) -> str:
    words = command.replace('"', " ").split(None, 1)
    return words[0].rpartition("/")[2] if words else ""


def _compiles(command: str) -> bool:
    return _tool(command) in ("gcc", "g++") and "-c" in shlex.split(command)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
