"""Runs the blocks of docs/interop.md as they stand: `pages.py PRIME [SECTION]`.

A section is run in a folder of its own, in the environment of its packages. A block of `sh` or `python` must succeed, and what it
prints must be what a block of `text` after it says, in which `…` stands for anything. A block of `sh` that ends in `&` starts
servers, which end with the section. A block of another kind is not run here: the tests that read it must be named below.
"""

import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from harness import ROOT, TARGET, program, until  # noqa: E402

PAGE = ROOT / "docs" / "interop.md"
# The environment of each section, by the first words of its heading.
ENVIRONMENTS = {
    "Data": "interop/evaluation",
    "Runs": "interop/evaluation",
    "TRL": "interop/trainers",
    "verl": "interop/verl",
    "OpenRLHF": "interop/verl",
    "verifiers": "interop/verifiers",
    "OpenEnv": "interop/environments",
    "Open Reward Standard": "interop/environments",
    "NeMo Gym": "interop/nemo",
    "lm-eval": "interop/evaluation",
    "Inspect": "interop/evaluation",
    "Model Context Protocol": "mcp/2",
    "OpenAI": "interop/evaluation",
}
# Kinds of blocks that are not run here: `verl_loop.py` reads the first two, `resources_server.py` the last.
READ_ELSEWHERE = {"yaml", "verl", "gym"}
# Seconds for a block, and for a server to listen.
PATIENCE = 600


def sections():
    """Yields headings with their blocks, each a kind and a text."""
    _, *parts = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for part in parts:
        heading, _, body = part.partition("\n")
        yield heading, re.findall(r"^```(\S*)\n(.*?)^```$", body, flags=re.MULTILINE | re.DOTALL)


def programs(prime, work):
    """A folder for a PATH with the program alone, under the name that the page calls it by."""
    folder = work / "bin"
    folder.mkdir()
    (folder / "prime-agents").symlink_to(prime)
    return folder


def blocks_of(kind):
    """The blocks of a kind, of all sections."""
    return [block for _, blocks in sections() for found, block in blocks if found == kind]


def environment(heading, prime, work):
    """The variables of a shell in which `prime-agents` and the section's packages are installed."""
    (folder,) = {path for start, path in ENVIRONMENTS.items() if heading == start or heading.startswith((f"{start} ", f"{start}:", f"{start}'"))}
    kept = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
    return {
        **kept,
        "PATH": f"{programs(prime, work)}:{TARGET / folder / 'bin'}:/usr/local/bin:/usr/bin:/bin",
        # What the page installs is there, or in the wheel; nothing is downloaded while it runs.
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(TARGET / "python" / "dist"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_QUIET": "1",
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(work / "hf"),
        "TOKENIZERS_PARALLELISM": "false",
        "TQDM_DISABLE": "1",
        "PYTHONWARNINGS": "ignore",
    }


def port_is_open(port):
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def ports_of(block):
    """Yields the ports that a block's servers listen on: the ones that it names, or the programs' defaults."""
    defaults = {"prime-agents serve": 7433, "uvicorn": 8000, "openreward": 8080}
    for line in (line for line in block.splitlines() if line.rstrip().endswith("&")):
        named = re.search(r"(?:127\.0\.0\.1:|--port[ =])(\d+)", line)
        yield int(named[1]) if named else next(port for word, port in defaults.items() if word in line)


class Section:
    def __init__(self, heading, prime, work):
        self.work, self.variables, self.servers = work / "work", environment(heading, prime, work), []
        self.work.mkdir()

    def run(self, kind, block):
        """Runs a block and returns what it prints."""
        if kind == "sh" and block.rstrip().endswith("&"):
            return self.serve(block)
        command = ["bash", "-eu", "-o", "pipefail", "-c", block] if kind == "sh" else ["python", "-c", block]
        done = subprocess.run(
            command, cwd=self.work, env=self.variables, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert done.returncode == 0, f"{block}\nended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def serve(self, block):
        ports = list(ports_of(block))
        taken = [port for port in ports if port_is_open(port)]
        assert not taken, f"ports {taken} are taken by other programs: end them, and try again"

        # Its shell waits for the servers, so that all end with their group.
        command = ["bash", "-eu", "-c", f"{block}\nwait"]
        log = open(self.work / f"server-{len(self.servers)}.log", "w")
        server = subprocess.Popen(command, cwd=self.work, env=self.variables, stdout=log, stderr=log, start_new_session=True)
        self.servers.append((server, log))

        def listen():
            assert server.poll() is None, f"{block}\nended:\n{pathlib.Path(log.name).read_text()}"
            return all(map(port_is_open, ports))

        until(listen, f"{block}\nlistens, see {log.name}", PATIENCE)
        return ""

    def end(self):
        for server, log in self.servers:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait()
            log.close()


def agrees(printed, page):
    """Whether what was printed is what the page says, in which `…` stands for anything."""
    pattern = ".*?".join(re.escape(part) for part in page.strip().split("…"))
    return re.fullmatch(pattern, printed.strip(), flags=re.DOTALL) is not None


def check(heading, blocks, prime):
    with tempfile.TemporaryDirectory() as name:
        section = Section(heading, prime, pathlib.Path(name))
        fixture = FIXTURES.get(heading.split(" ")[0])
        if fixture:
            fixture(section)

        printed, count = None, 0
        try:
            for kind, block in blocks:
                if kind == "text":
                    assert printed is not None and agrees(printed, block), f"{heading}: it prints\n{printed}\nand the page says\n{block}"
                    printed = None
                elif kind in ("sh", "python"):
                    printed, count = section.run(kind, block), count + 1
                else:
                    assert kind in READ_ELSEWHERE, f"{heading}: nobody runs or reads a block of {kind!r}"
        finally:
            section.end()
    print(f"ok  {heading}: {count} blocks", flush=True)


def tiny_models(section):
    """Random models under the names of the page, so that nothing is downloaded."""
    code = ROOT / "tests" / "interop" / "tiny_model.py"
    subprocess.run(["python", code, "Qwen/Qwen3-0.6B"], cwd=section.work, env=section.variables, check=True)


FIXTURES = {"TRL": tiny_models}


def main():
    prime, chosen = program(sys.argv[1]), sys.argv[2:]
    found = list(sections())
    assert found and all(blocks for _, blocks in found), "a section without a block"
    for heading, blocks in found:
        if not chosen or heading.startswith(tuple(chosen)):
            check(heading, blocks, prime)


if __name__ == "__main__":
    main()
