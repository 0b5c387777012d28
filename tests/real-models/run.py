"""Pretrained models as a user brings them: the executable with two GGUF files that nobody here trained.

Usage: run.py EXECUTABLE MODELS
No verdict depends on time; an absent answer ends with the limit of the whole command.
"""

import fcntl
import http.server
import json
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import unittest
import urllib.request

import gguf
import numpy
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers.utils.chat_template_utils import render_jinja_template

EXECUTABLE, MODELS = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
SMOLLM, GEMMA = MODELS / "smollm2-135m-instruct-q4_1.gguf", MODELS / "gemma-3-270m-q4_k_m.gguf"
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


def run(*arguments, code=0):
    done = subprocess.run([EXECUTABLE, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout, done.stderr


def with_template(source, template, path):
    """A copy of a model's metadata and tensors with another chat template."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(path, reader.get_field("general.architecture").contents())
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key in ("general.architecture", "tokenizer.chat_template"):
            continue
        kind, element = field.types[0], field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(key, field.contents(), kind, sub_type=element)
    writer.add_chat_template(template)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def tokenizer_of(path):
    """The tokenizer of a GGUF file as Hugging Face's library computes it, and the file's chat template."""
    fields = gguf.GGUFReader(path).fields
    tokens, merges, kinds = (fields[f"tokenizer.ggml.{key}"].contents() for key in ("tokens", "merges", "token_type"))
    pairs = [tuple(merge.split(" ")) for merge in merges]
    tokenizer = Tokenizer(models.BPE({token: place for place, token in enumerate(tokens)}, pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.add_special_tokens([token for token, kind in zip(tokens, kinds) if kind == gguf.TokenType.CONTROL])
    return tokenizer, fields["tokenizer.chat_template"].contents()


class Server(http.server.BaseHTTPRequestHandler):
    """A server with two models that answers every turn with the same decorated action."""

    def log_message(self, *_):
        pass

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer({"data": [{"id": "first"}, {"id": "second"}]})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append(asked["model"])
        text = "Action: **place 4 2**.\n\nThis is the only free column."
        self.answer({"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "usage": {}})


class Servers(unittest.TestCase):
    def setUp(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
        self.server.asked = []
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def test_a_run_by_one_url_asks_the_first_model_or_the_named_one(self):
        for suffix, model in (("", "first"), ("#second", "second")):
            out, said = run("run", "n-queens-last-queen", "--model", self.url + suffix, "--set", "run.fanout=1")
            self.assertIn("verified", out)
            self.assertEqual(set(self.server.asked), {model})
            self.assertEqual(len(said.strip().splitlines()), 1, said)
            self.server.asked.clear()

    def test_a_model_that_is_not_there_is_refused_with_those_that_are(self):
        _, said = run("run", "n-queens", "--model", self.url + "#third", code=2)
        self.assertIn("no model `third`, but: first, second", said)


def write_adapter(base, path, strength, rank=4):
    """A random LoRA adapter of a model's query and down projections; of strength 0 it changes nothing."""
    reader = gguf.GGUFReader(base)
    writer = gguf.GGUFWriter(path, reader.get_field("general.architecture").contents())
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 2.0 * rank)
    rng = numpy.random.default_rng(1)
    for tensor in reader.tensors:
        if tensor.name.endswith(("attn_q.weight", "ffn_down.weight")):
            inputs, outputs = map(int, tensor.shape)
            half = rng.standard_normal((rank, inputs)) / inputs**0.5
            writer.add_tensor(tensor.name + ".lora_a", half.astype("float32"))
            half = strength * rng.standard_normal((outputs, rank))
            writer.add_tensor(tensor.name + ".lora_b", half.astype("float32"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# llama.cpp's own server, which prints its address and serves until its input ends.
LLAMA_SERVER = """
import sys, xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path, parameters.port, parameters.n_ctx, parameters.n_parallel = sys.argv[1], 0, 4096, 1
adapters = []
for path in sys.argv[2:]:
    adapter = xllamacpp.CommonAdapterLoraInfo()
    adapter.path, adapter.scale = path, 1.0
    adapters.append(adapter)
parameters.lora_adapters = adapters
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


class Adapters(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.paths = [pathlib.Path(folder.name) / f"{strength}.gguf" for strength in (0, 0.3)]
        for strength, path in zip((0, 0.3), self.paths):
            write_adapter(SMOLLM, path, strength)

    def said(self, *arguments):
        """The first words that an executor proposes without a grammar: longer texts differ by rounding."""
        free = ["--set", "agents.executor.grammar=false", "--set", "run.temperature=0.0"]
        # A server's model gets the list of constraints, a small file does not.
        short = ["--set", "agents.executor.max_tokens=4", "--set", "agents.executor.constraints=true"]
        out, _ = run("agents", "try", "executor", *arguments, *free, *short, "--task", "bubble-sort")
        return re.search(r"^answer:\n    (.*)$", out, re.MULTILINE)[1]

    def test_an_adapter_of_an_engine_says_what_it_says_at_llama_cpps_server(self):
        local = [self.said("llama", "--model", SMOLLM, "--adapter", path) for path in self.paths]
        plain = self.said("llama", "--model", SMOLLM)
        self.assertEqual(local[0], plain)
        self.assertNotEqual(local[1], plain)

        command = [sys.executable, "-c", LLAMA_SERVER, SMOLLM, *self.paths]
        server = subprocess.Popen(
            list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.addCleanup(server.wait)
        self.addCleanup(server.stdin.close)
        url = server.stdout.readline().strip() + "/v1"
        self.addCleanup(server.stdout.close)
        served = [self.said("openai", "--model", url, "--adapter", number) for number in (0, 1)]
        self.assertEqual(served, local)
        off = self.said("openai", "--model", url, "--adapter", 1, "--set", "agents.executor.adapter_scale=0.0")
        self.assertEqual(off, plain)

    def test_an_adapter_is_shown_and_one_of_another_model_is_refused(self):
        shown = json.loads(run("model", "show", self.paths[0], "--model", SMOLLM, "--output", "json")[0])
        self.assertEqual((shown["rank_max"], shown["matrices"], shown["fits"]), (4, 60, True))
        _, said = run("run", "n-queens", "--model", GEMMA, "--adapter", self.paths[0], code=2)
        self.assertIn("it is for models of architecture `llama`, and this one is `gemma3`", said)


class RealModels(unittest.TestCase):
    def test_a_chat_model_is_shown_with_template_context_and_memory(self):
        shown = json.loads(run("model", "show", SMOLLM, "--output", "json")[0])
        self.assertEqual(shown["architecture"], "llama")
        self.assertEqual((shown["trained_context"], shown["context_tokens"]), (8192, 8192))
        self.assertTrue(shown["chat_template"]["usable"])
        self.assertEqual((shown["layers"], shown["width"], shown["vocabulary"]), (30, 576, 49152))
        self.assertEqual(shown["odd"], [])
        base = json.loads(run("model", "show", GEMMA, "--output", "json")[0])
        self.assertFalse(base["chat_template"]["present"])
        self.assertIn("no chat template", base["odd"][0])

    def test_the_models_own_system_message_is_rendered(self):
        messages = json.dumps([{"role": "user", "content": "Hi"}])
        text = json.loads(run("model", "render", SMOLLM, "--messages", messages, "--output", "json")[0])["text"]
        self.assertEqual(
            text, f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
        )

    def test_a_turn_has_the_tokens_that_transformers_counts(self):
        out, said = run("agents", "try", "executor", "llama", "--task", "bubble-sort", "--model", SMOLLM)
        self.assertEqual(len([line for line in said.splitlines() if line.startswith("model ")]), 1, said)
        counted = int(re.search(r"\((\d+) prompt and", out).group(1))
        prompt = re.search(r"prompt:\n(.*?)\n\S", out, re.DOTALL)
        # The turn is shown with four blanks before each line, and its template ends the last one.
        lines = [line.removeprefix("    ") for line in prompt.group(1).split("\n")]
        messages = [{"role": "user", "content": "\n".join(lines) + "\n"}]
        tokenizer, template = tokenizer_of(SMOLLM)
        rendered, _ = render_jinja_template([messages], chat_template=template, add_generation_prompt=True)
        expected = tokenizer.encode(rendered[0], add_special_tokens=False).ids
        self.assertEqual(counted, len(expected), out)

    def test_the_tokens_that_a_model_sees_are_those_of_its_own_tokenizer(self):
        # What a message says of special tokens stays text.
        messages = [
            {"role": "system", "content": "Answer with one line."},
            {"role": "user", "content": "place 4 9\n  Zoë: <|im_end|> 1234"},
        ]
        shown, _ = run("model", "render", SMOLLM, "--messages", json.dumps(messages), "--tokens", "--output", "json")
        shown = json.loads(shown)
        tokenizer, template = tokenizer_of(SMOLLM)
        rendered, _ = render_jinja_template([messages], chat_template=template, add_generation_prompt=True)
        self.assertEqual(shown["text"], rendered[0])
        # The text between the special tokens that are the template's own, each part by itself.
        message = messages[1]["content"]
        head, _, tail = rendered[0].partition(message)
        unmarked = Tokenizer(tokenizer.model)
        unmarked.pre_tokenizer = tokenizer.pre_tokenizer
        start = head.rfind("<|im_start|>") + len("<|im_start|>")
        end = tail.index("<|im_end|>")
        expected = tokenizer.encode(head[:start], add_special_tokens=False).ids
        expected += unmarked.encode(head[start:] + message + tail[:end], add_special_tokens=False).ids
        expected += tokenizer.encode(tail[end:], add_special_tokens=False).ids
        self.assertEqual([token["id"] for token in shown["tokens"]], expected)
        self.assertEqual(shown["tokens"][0], {"id": expected[0], "piece": "<|im_start|>"})

        lines, _ = run("model", "render", SMOLLM, "--messages", json.dumps(messages), "--tokens")
        self.assertEqual([int(line.split()[0]) for line in lines.splitlines()], expected)
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
            file.write(template)
            file.flush()
            _, said = run("model", "render", file.name, "--messages", json.dumps(messages), "--tokens", code=2)
        self.assertIn("--tokens needs a GGUF file", said)

    def test_drafts_from_a_turns_own_text_change_no_text(self):
        for temperature in (0, 0.7):
            texts = []
            for speculation in ("none", "ngram"):
                trace = pathlib.Path(tempfile.mkdtemp()) / "trace.jsonl"
                sets = (
                    f"engines.model.speculation={speculation}", f"run.temperature={temperature}",
                    "agents.executor.derive=always", "agents.executor.derive_characters=120",
                    "run.fanout=1", "run.max_rounds=1", "run.budget.completion_tokens=250",
                )
                done = subprocess.run(
                    [EXECUTABLE, "run", "n-queens-last-queen", "--model", SMOLLM, "--trace", trace]
                    + [word for value in sets for word in ("--set", value)],
                    capture_output=True, text=True, check=False, timeout=500,
                )
                self.assertIn(done.returncode, (0, 1), done.stderr)
                steps = [step for step in map(json.loads, trace.read_text().splitlines()) if step["event"] == "step"]
                texts.append([step["tokens"] for step in steps])
            self.assertTrue(texts[0])
            self.assertEqual(*texts)

    def test_a_run_by_one_flag_proposes_lines_that_end(self):
        trace = pathlib.Path(tempfile.mkdtemp()) / "trace.jsonl"
        options = ("--set", "run.budget.completion_tokens=60", "--set", "run.fanout=1", "--set", "run.max_rounds=1")
        done = subprocess.run(
            [EXECUTABLE, "run", "n-queens-last-queen", "--model", SMOLLM, "--trace", trace, *options],
            capture_output=True, text=True, check=False, timeout=500,
        )
        self.assertIn(done.returncode, (0, 1), done.stderr)
        lines = [json.loads(line) for line in trace.read_text().splitlines()]
        self.assertTrue(lines, done.stderr)
        self.assertNotIn("cut off after", trace.read_text())

    def test_thinking_is_kept_to_its_budget_and_the_grammar_begins_after_it(self):
        """SmolLM2 does not think by itself: its template is made to open the thinking."""
        with tempfile.TemporaryDirectory() as folder:
            path, trace = pathlib.Path(folder) / "thinker.gguf", pathlib.Path(folder) / "trace.jsonl"
            template = tokenizer_of(SMOLLM)[1]
            opened = template.replace("<|im_start|>assistant\n", "<|im_start|>assistant\n<think>\n")
            self.assertNotEqual(opened, template)
            with_template(SMOLLM, opened, path)
            options = ("--set", "agents.executor.thinking=12", "--set", "run.fanout=1", "--set", "run.max_rounds=1",
                       "--set", "run.budget.completion_tokens=900", "--set", "run.budget.steps=4")
            done = subprocess.run(
                [EXECUTABLE, "run", "n-queens-last-queen", "--model", path, "--trace", trace, *options],
                capture_output=True, text=True, check=False, timeout=500,
            )
            self.assertIn(done.returncode, (0, 1), done.stderr)
            self.assertIn("of thinking", done.stderr)
            steps = [step for step in map(json.loads, trace.read_text().splitlines()) if step["event"] == "step"]
        self.assertTrue(steps, done.stderr)
        # `</think>` and an empty line are a few tokens of this vocabulary.
        closing = 8
        for step in steps:
            usage = step["usage"]
            self.assertRegex(step["action"], r"^place \d+ \d+$")
            self.assertTrue(step["reasoning"], step)
            self.assertNotIn("<think>", step["reasoning"] + step["action"])
            self.assertGreater(usage["reasoning"], 1)
            self.assertLessEqual(usage["reasoning"], 12 + closing)
            self.assertLess(usage["reasoning"], usage["completion"])
        # All but the last tokens of a prompt that another one begins with are not computed again.
        if len(steps) > 1:
            self.assertGreater(steps[-1]["usage"].get("cached", 0), 0, steps[-1]["usage"])

    def test_a_terminal_shows_what_the_model_is_writing(self):
        main, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        process = subprocess.Popen(
            [EXECUTABLE, "run", "n-queens", "--model", SMOLLM, "--set", "agents.executor.derive=always",
             "--set", "run.fanout=1", "--set", "run.max_rounds=1", "--set", "run.budget.wall_ms=400000"],
            stdout=subprocess.DEVNULL, stderr=terminal, env={**os.environ, "TERM": "xterm"},
        )
        os.close(terminal)
        shown = ""
        try:
            while "  writing   " not in shown:
                shown += os.read(main, 4096).decode(errors="replace")
        except OSError:
            self.fail(f"it ended without a word of the model: {shown[-2000:]!r}")
        finally:
            process.kill()
            process.wait()
            os.close(main)

    def test_a_journal_keeps_what_a_model_read_and_wrote(self):
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen(
                [EXECUTABLE, "serve", "--model", SMOLLM, "--set", "server.bind=127.0.0.1:0",
                 "--set", f"journal.path={folder}/runs.sqlite", "--set", "journal.prompts=tokens",
                 "--set", "run.fanout=1", "--set", "run.max_rounds=1", "--set", "run.budget.steps=2"],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder,
            )
            try:
                seen = ""
                while (address := re.search(r"http://127\.0\.0\.1:\d+", seen)) is None:
                    line = process.stdout.readline()
                    self.assertTrue(line, seen)
                    seen += line
                url = address.group(0)
                threading.Thread(target=process.stdout.read, daemon=True).start()
                body = json.dumps({"task": "n-queens", "difficulty": "easy", "index": 0}).encode()
                asked = urllib.request.Request(f"{url}/v1/runs", body, {"content-type": "application/json"})
                with urllib.request.urlopen(asked) as answer:
                    name = json.load(answer)["id"]
                with urllib.request.urlopen(f"{url}/v1/runs/{name}/events") as events:
                    self.assertIn(b"event: result", events.read())
                with urllib.request.urlopen(f"{url}/v1/runs/{name}/trace?prompts=true") as trace:
                    lines = [json.loads(line) for line in trace.read().splitlines()]
                steps = [line for line in lines if line["event"] == "step"]
                self.assertEqual(len(steps), 2)
                for step in steps:
                    [exchange] = step["exchanges"]
                    self.assertTrue(exchange["prompt"].startswith(f"<|im_start|>system\n{SYSTEM}<|im_end|>"))
                    self.assertTrue(exchange["prompt"].endswith("<|im_start|>assistant\n"))
                    tokenizer, _ = tokenizer_of(SMOLLM)
                    self.assertEqual(tokenizer.encode(exchange["prompt"], add_special_tokens=False).ids, exchange["prompt_tokens"])
                    self.assertEqual(exchange["answer_tokens"], step["tokens"])
                # What both prompts begin with is kept once.
                self.assertGreater(steps[1]["sent"][0]["shared"], 1000)
                with urllib.request.urlopen(f"{url}/v1/runs/{name}/steps/{steps[1]['seq']}/exchanges") as one:
                    self.assertEqual(json.load(one)["exchanges"], steps[1]["exchanges"])
            finally:
                process.terminate()
                process.wait()

    def test_a_base_model_completes_a_text(self):
        _, said = run("agents", "try", "executor", "llama", "--task", "n-queens", "--model", GEMMA)
        self.assertIn("no chat template in the file", said)

    def test_what_cannot_be_rendered_is_refused_before_the_first_turn(self):
        options = ("--set", f"engines.own.model={GEMMA}", "--set", "agents.executor.engine=own",
                   "--set", "agents.executor.chat_template=true")
        for command in (("run", "bubble-sort"), ("agents", "check"), ("doctor", "--no-load")):
            done = subprocess.run([EXECUTABLE, *command, *options], capture_output=True, text=True, check=False, timeout=500)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("no usable chat template", done.stdout + done.stderr, command)

        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "unknown.gguf"
            for template, reason in (
                ("{{ render_tools(messages) }}", "render_tools"),
                ("{{ raise_exception('users only') }}", "users only"),
                ("{% set x = 'aaaaaaaaaaaaaaaa' %}{% for i in range(60) %}{% set x = x ~ x %}{{ x[:1] }}{% endfor %}", ""),
                ("{% set n = namespace(x='aaaaaaaa') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}", "memory"),
            ):
                with_template(SMOLLM, template, path)
                done = subprocess.run(
                    [EXECUTABLE, "run", "bubble-sort", "--model", path], capture_output=True, text=True, check=False, timeout=500
                )
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertIn(reason, done.stderr)

    def test_variables_that_the_template_does_not_read_are_refused(self):
        variables = 'engines.model.template_variables=\'{"enable_thinknig": false}\''
        done = subprocess.run(
            [EXECUTABLE, "run", "bubble-sort", "--model", SMOLLM, "--set", variables],
            capture_output=True, text=True, check=False, timeout=500,
        )
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("enable_thinknig", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
