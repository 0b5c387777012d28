"""Samples as tokens: what `prime-agents data` wrote, split into training and held-out ones."""

import collections
import dataclasses
import json
import pathlib

import pyarrow.parquet

from .errors import InputError

# As in the Rust trainer, one input in ten is never trained on, for any seed.
HELD_OUT_ONE_IN = 10
FNV_OFFSET, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3
NAMES = ("task", "difficulty", "index", "base_seed")


def fnv1a(data):
    """The 64-bit FNV-1a digest of bytes."""
    value = FNV_OFFSET
    for byte in data:
        value = (value ^ byte) * FNV_PRIME & 0xFFFFFFFFFFFFFFFF
    return value


def is_held_out_input(task, given):
    """Returns whether an input (a dict in the order of its keys) is held out."""
    text = json.dumps(given, separators=(",", ":"), ensure_ascii=False)
    return fnv1a(f"{task} {text}".encode()) % HELD_OUT_ONE_IN == 0


class HeldOut:
    """Remembers for each instance whether its input is held out."""

    def __init__(self):
        self.known = {}

    def __call__(self, row):
        name = tuple(row[part] for part in NAMES)
        if name not in self.known:
            from .tasks import Instance

            self.known[name] = is_held_out_input(row["task"], Instance(*name).input)
        return self.known[name]


def read(folder):
    """The rows of a data set's folder, in the order of its files."""
    files = sorted(pathlib.Path(folder).rglob("*.parquet"))
    if not files:
        raise InputError(f"{folder} has no Parquet file: write one with `prime-agents data`")
    rows = []
    for path in files:
        try:
            rows += pyarrow.parquet.read_table(path).to_pylist()
        except pyarrow.ArrowInvalid as error:
            raise InputError(f"{path} cannot be read: {error}") from error
    return rows


def chats(rows, folder):
    """Checks that rows are prompts with completions."""
    for column in ("prompt", "completion"):
        if not rows or column not in rows[0]:
            raise InputError(f"{folder} has no `{column}`: it is not a data set of `data sft`")
    return rows


def split(rows, is_held_out):
    """Training rows and held-out rows."""
    parts = ([], [])
    for row in rows:
        parts[bool(is_held_out(row))].append(row)
    return parts


@dataclasses.dataclass(frozen=True)
class Sample:
    """Token ids of a prompt as the program sends it, and of the answer with its end."""

    prompt: tuple[int, ...]
    completion: tuple[int, ...]
    task: str = ""

    def __len__(self):
        return len(self.prompt) + len(self.completion)

    def columns(self):
        """A sample as trainers read it: the loss is on the answer only."""
        return {
            "input_ids": [*self.prompt, *self.completion],
            "labels": [-100] * len(self.prompt) + list(self.completion),
        }


def rendered(tokenizer, prompt, completion):
    """The texts of a turn under the model's own template: what is asked, and the answer with its
    end."""
    asked = tokenizer.apply_chat_template(prompt, add_generation_prompt=True, tokenize=False)
    whole = tokenizer.apply_chat_template(prompt + completion, tokenize=False)
    if not whole.startswith(asked):
        raise InputError(
            "the chat template renders an answer unlike the prompt for it, so no answer can be "
            "taught: use a template without forced thinking"
        )
    return asked, whole[len(asked) :]


def sample(tokenizer, row):
    """A row as tokens. Prompt and answer are tokenized apart, as a model meets them."""
    asked, answer = rendered(tokenizer, row["prompt"], row["completion"])
    prompt = tokenizer(asked, add_special_tokens=False)["input_ids"]
    completion = tokenizer(answer, add_special_tokens=False)["input_ids"]
    # The template's text after the end of the answer is never asked for.
    if tokenizer.eos_token_id in completion:
        completion = completion[: completion.index(tokenizer.eos_token_id) + 1]
    else:
        completion = [*completion, tokenizer.eos_token_id]
    return Sample(tuple(prompt), tuple(completion), row.get("task", ""))


def samples(tokenizer, rows, tokens_max):
    """All rows as tokens; one that is too long is refused, not cut."""
    made = [sample(tokenizer, row) for row in rows]
    longest = max(map(len, made), default=0)
    if longest > tokens_max:
        raise InputError(
            f"a sample has {longest} tokens, the limit is {tokens_max}: raise --tokens-max, or "
            "leave out what is too long"
        )
    return made


def spread(items, most):
    """At most `most` items, spread evenly over the list and over tasks."""
    if len(items) <= most:
        return items
    by_task = collections.defaultdict(list)
    for item in items:
        by_task[item.task].append(item)
    share = -(-most // len(by_task))
    chosen = []
    for of_task in by_task.values():
        count = min(share, len(of_task))
        chosen += [of_task[place * len(of_task) // count] for place in range(count)]
    return chosen[:most] if len(by_task) == 1 else chosen
