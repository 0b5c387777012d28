"""What is compared: one row for each way of sending the step through a framework, in the order of measuring.

Rows that are compared with each other by a promise stand side by side, so that a busy moment of the machine hits both.
"""

from dataclasses import dataclass

# The columns of a row: one trajectory; 64 and 1,000 through the same three actors; the same with actors of their own.
COLUMNS = ("seq", "shared64", "shared1000", "trios64", "trios1000")
# Only ours: how it is at ten times as many.
MANY = "shared10000"

CELL = "prime-agents, a cell"
CELL_A_CORE = "prime-agents, a cell a core"
OWN_ARBITERS = "prime-agents, agents on arbiters of their own"
JOURNAL = "D: prime-agents, journal"
ACTIX_ONE = "actix tell, one arbiter"
ACTIX_OWN = "actix tell, arbiter per actor"
LANGGRAPH_SQLITE = "D: langgraph + AsyncSqliteSaver"


@dataclass(frozen=True)
class Row:
    label: str
    # What carries the steps, as the plot names it: a framework may have several rows.
    family: str
    # "rust", "python" or "prime": what `program` is.
    language: str
    program: str
    # How the program is called: of ours the options, of others the variant.
    variant: tuple
    # Steps of each trajectory for each of COLUMNS; None is not measured. Empty for ours, which is measured for seconds.
    steps: tuple
    # Whose version is shown.
    package: str
    # Nothing that one would call a framework: what the language itself takes.
    is_floor: bool = False

    @property
    def is_ours(self):
        return self.language == "prime"

    @property
    def is_durable(self):
        """A record or a checkpoint of each step is on disk before the next one."""
        return self.label.startswith("D: ")


# Steps of each trajectory where a step takes well below a microsecond, and where each message wakes a thread.
FAST = (200_000, 4000, 250, 3000, 200)
WAKING = (40_000, 2000, 200, 200, 100)


def rust(label, family, program, variant, steps, package, is_floor=False):
    return Row(label, family, "rust", program, (variant,), steps, package, is_floor)


def python(label, family, program, variant, steps, package, is_floor=False):
    return Row(label, family, "python", program, (variant,), steps, package, is_floor)


def ours(label, family, *options):
    return Row(label, family, "prime", "prime-agents", options, (), "prime-agents")


def cells(count, placement):
    return "--set", f"runtime.cells={count}", "--set", f'runtime.placement="{placement}"'


ROWS = (
    rust("function call", "function call", "floor", "call", (3_000_000, 20_000, 1000, None, None), "rustc", True),
    rust("crossbeam, three threads", "crossbeam", "floor", "crossbeam", WAKING, "crossbeam-channel", True),
    rust("tokio channels, current_thread", "tokio channels", "tokio_channels", "current", FAST, "tokio", True),
    rust("tokio channels, multi_thread", "tokio channels", "tokio_channels", "multi", FAST, "tokio", True),
    rust(ACTIX_ONE, "actix", "actix_tell", "one", FAST, "actix"),
    ours(CELL, "prime-agents", *cells(1, "shared")),
    rust("actix tell, arbiter per core", "actix", "actix_tell", "core", FAST, "actix"),
    ours(CELL_A_CORE, "prime-agents", *cells(0, "shared")),
    rust(ACTIX_OWN, "actix", "actix_tell", "own", WAKING, "actix"),
    ours(OWN_ARBITERS, "prime-agents", *cells(1, "own")),
    rust("ractor cast, current_thread", "ractor", "ractor_cast", "current", FAST, "ractor"),
    rust("ractor cast, multi_thread", "ractor", "ractor_cast", "multi", FAST, "ractor"),
    rust("kameo tell, current_thread", "kameo", "kameo_tell", "current", FAST, "kameo"),
    rust("kameo tell, multi_thread", "kameo", "kameo_tell", "multi", FAST, "kameo"),
    python("asyncio.Queue", "asyncio.Queue", "asyncio_queues", "-", (20_000, 600, 50, 200, 10), "python", True),
    python("pykka tell", "pykka", "pykka_tell", "-", (10_000, 500, 40, 100, None), "pykka"),
    python("autogen-core publish", "autogen-core", "autogen", "publish", (2000, 20, 2, 20, 2), "autogen-core"),
    python("autogen-core send_message", "autogen-core", "autogen", "send", (2000, 20, 2, 20, 2), "autogen-core"),
    python(
        "agent-framework workflow",
        "agent-framework",
        "agent_framework_workflow",
        "memory",
        (1500, None, None, 20, 1),
        "agent-framework-core",
    ),
    python(
        "llama-index-workflows",
        "llama-index-workflows",
        "llama_index",
        "-",
        (1000, None, None, 10, 1),
        "llama-index-workflows",
    ),
    python("langgraph invoke", "langgraph", "langgraph_graph", "invoke", (1500, None, None, None, None), "langgraph"),
    python("langgraph ainvoke", "langgraph", "langgraph_graph", "ainvoke", (1000, None, None, 12, 1), "langgraph"),
    python("ray tell", "ray", "ray_actors", "-", (400, 6, 1, None, None), "ray"),
    rust(
        "D: tokio channels + fdatasync, grouped",
        "tokio + fdatasync",
        "tokio_channels",
        "durable",
        (300, 200, 60, None, None),
        "tokio",
        True,
    ),
    ours(JOURNAL, "prime-agents, journal", *cells(0, "shared"), "--durable"),
    python(
        LANGGRAPH_SQLITE,
        "langgraph + SQLite",
        "langgraph_graph",
        "sqlite",
        (200, None, None, 3, None),
        "langgraph-checkpoint-sqlite",
    ),
    python(
        "D: langgraph + AsyncSqliteSaver, durability=sync",
        "langgraph + SQLite, sync",
        "langgraph_graph",
        "sqlite-sync",
        (150, None, None, 2, None),
        "langgraph-checkpoint-sqlite",
    ),
    python(
        "D: agent-framework + files",
        "agent-framework + files",
        "agent_framework_workflow",
        "files",
        (400, None, None, 5, None),
        "agent-framework-core",
    ),
    python("D: dbos + SQLite", "dbos + SQLite", "dbos_workflow", "-", (100, None, None, 1, None), "dbos"),
)


def phases(row, scale):
    """The words of a program's command line that say what to measure, with this share of the steps."""
    names = ("seq", "shared:64", "shared:1000", "trios:64", "trios:1000")
    return [f"{name}:{max(1, round(steps * scale))}" for name, steps in zip(names, row.steps) if steps is not None]
