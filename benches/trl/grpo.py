"""TRL's side of scripts/measure-trl, run with the Python of an environment that has benches/trl/requirements.txt.

    grpo.py PLAN.json    what to do, as scripts/measure-trl writes it

Makes the same model of a GGUF file of this project for transformers, proves it by greedy completions of reference steps, and
measures iterations of GRPOTrainer in processor seconds. What came out is written as JSON to the plan's `out`.
"""

import contextlib
import json
import pathlib
import re
import struct
import sys
import tempfile
import time

import datasets
import numpy
import torch
import transformers
import trl
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

NORMAL, CONTROL, USER_DEFINED = 1, 3, 4
# Layouts of a GGUF file's scalars, by type number; 8 is a string, 9 an array.
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
ELEMENTS = {0: numpy.dtype("<f4"), 1: numpy.dtype("<f2"), 8: numpy.dtype([("scale", "<f2"), ("weights", "i1", 32)])}
# V of a line that cannot be applied or attacks, and of one that names another row.
CRITICAL, MAJOR = 1.0, 0.6
# What the share of a group that wrote the same line counts: `reward.consistency`.
CONSISTENCY = 0.2


class Gguf:
    """Metadata and tensors of a file whose matrices are f32, f16 or q8_0."""

    def __init__(self, path):
        self.data, self.at = pathlib.Path(path).read_bytes(), 0
        if self.data[:4] != b"GGUF":
            sys.exit(f"{path}: not a GGUF file")
        self.at = 8
        tensors, entries = self.scalar("Q"), self.scalar("Q")
        self.metadata = {self.text(): self.value(self.scalar("I")) for _ in range(entries)}
        places = []
        for _ in range(tensors):
            name, dimensions = self.text(), self.scalar("I")
            shape = [self.scalar("Q") for _ in range(dimensions)]
            places.append((name, shape[::-1], self.scalar("I"), self.scalar("Q")))
        alignment = self.metadata.get("general.alignment", 32)
        start = -(-self.at // alignment) * alignment
        self.tensors = {}
        for name, shape, kind, offset in places:
            if kind not in ELEMENTS:
                sys.exit(f"{path}: {name} is neither f32 nor f16 nor q8_0; see `prime-agents train convert`")
            element, count = ELEMENTS[kind], int(numpy.prod(shape))
            if element.names is None:
                values = numpy.frombuffer(self.data, element, count, start + offset)
            else:
                blocks = numpy.frombuffer(self.data, element, count // 32, start + offset)
                values = blocks["weights"] * blocks["scale"].astype(numpy.float32)[:, None]
            self.tensors[name] = torch.from_numpy(values.astype(numpy.float32).reshape(shape))

    def scalar(self, layout):
        (value,) = struct.unpack_from(f"<{layout}", self.data, self.at)
        self.at += struct.calcsize(f"<{layout}")
        return value

    def text(self):
        size = self.scalar("Q")
        self.at += size
        return self.data[self.at - size : self.at].decode()

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            element, count = self.scalar("I"), self.scalar("Q")
            return [self.value(element) for _ in range(count)]
        return self.scalar(SCALARS[kind])


def halves(matrix, heads):
    """Rows of queries or keys as transformers wants them: GGUF rotates neighbours, transformers the halves of a head."""
    rows, columns = matrix.shape
    return matrix.reshape(heads, rows // heads // 2, 2, columns).transpose(1, 2).reshape(rows, columns)


def llama(file):
    """The model in transformers' form, in f32."""
    meta, tensors = file.metadata, file.tensors
    heads, layers = meta["llama.attention.head_count"], meta["llama.block_count"]
    config = transformers.LlamaConfig(
        vocab_size=len(meta["tokenizer.ggml.tokens"]),
        hidden_size=meta["llama.embedding_length"],
        intermediate_size=meta["llama.feed_forward_length"],
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=meta["llama.attention.head_count_kv"],
        max_position_embeddings=meta["llama.context_length"],
        rms_norm_eps=meta["llama.attention.layer_norm_rms_epsilon"],
        rope_parameters={"rope_type": "default", "rope_theta": meta["llama.rope.freq_base"]},
        tie_word_embeddings="output.weight" not in tensors,
        bos_token_id=meta["tokenizer.ggml.bos_token_id"],
        eos_token_id=meta["tokenizer.ggml.eos_token_id"],
        pad_token_id=meta["tokenizer.ggml.padding_token_id"],
    )
    weights = {"model.embed_tokens.weight": tensors["token_embd.weight"], "model.norm.weight": tensors["output_norm.weight"]}
    weights["lm_head.weight"] = tensors.get("output.weight", tensors["token_embd.weight"])
    parts = {
        "input_layernorm": "attn_norm",
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "post_attention_layernorm": "ffn_norm",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
    }
    for layer in range(layers):
        for theirs, ours in parts.items():
            tensor = tensors[f"blk.{layer}.{ours}.weight"]
            if ours in ("attn_q", "attn_k"):
                tensor = halves(tensor, heads)
            weights[f"model.layers.{layer}.{theirs}.weight"] = tensor
    model = transformers.LlamaForCausalLM(config)
    model.load_state_dict(weights)
    return model


def tokenizer_of(file):
    """Bytes, and words that are one token each."""
    tokens, kinds = (file.metadata[f"tokenizer.ggml.{name}"] for name in ("tokens", "token_type"))
    bos, eos, pad = (file.metadata[f"tokenizer.ggml.{name}_token_id"] for name in ("bos", "eos", "padding"))
    bytes_only = {token: index for index, (token, kind) in enumerate(zip(tokens, kinds)) if kind == NORMAL}
    tokenizer = Tokenizer(models.BPE(vocab=bytes_only, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    # They get the numbers that follow, in this order: those of the file.
    tokenizer.add_tokens([AddedToken(t, normalized=False, special=k == CONTROL) for t, k in zip(tokens, kinds) if k != NORMAL])
    if [tokenizer.token_to_id(token) for token in tokens] != list(range(len(tokens))):
        sys.exit("the tokens have other numbers than in the file")
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{tokens[bos]} $A", special_tokens=[(tokens[bos], bos)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=tokens[bos],
        eos_token=tokens[eos],
        pad_token=tokens[pad],
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )


def cut(text, words, base=259):
    """The tokens of a text as the trainer cuts it: the longest word first, and what is left byte by byte."""
    for index, word in enumerate(words):
        if word in text:
            before, after = text.split(word, 1)
            # Longer words do not occur in the parts: they were looked for before.
            return cut(before, words, base) + [base + index] + cut(after, words, base)
    return list(text.encode())


def steps_of(plan):
    """Reference steps, with what the model is shown and was taught to write."""
    return list(datasets.load_dataset("parquet", data_files=f"{plan['steps']}/data/*.parquet", split="train"))


def content(messages):
    return messages[0]["content"]


def check(file, plan):
    """Greedy completions are the reference steps that the model was trained to write; texts are cut alike."""
    model, tokenizer = llama(file), tokenizer_of(file)
    words = [t for t, k in zip(*(file.metadata[f"tokenizer.ggml.{n}"] for n in ("tokens", "token_type"))) if k == USER_DEFINED]
    steps = [(content(step["prompt"]), content(step["completion"])) for step in steps_of(plan)]
    for text in (text for step in steps for text in step):
        if tokenizer(text)["input_ids"][1:] != cut(text, words):
            sys.exit(f"{text!r} is cut differently")
    chosen = steps[:: max(1, len(steps) // plan["checked"])][: plan["checked"]]
    inputs = tokenizer([prompt for prompt, _ in chosen], return_tensors="pt", padding=True, return_token_type_ids=False)
    with torch.no_grad():
        drawn = model.eval().generate(**inputs, do_sample=False, max_new_tokens=plan["tokens_max"])
    written = tokenizer.batch_decode(drawn[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    for text, (prompt, completion) in zip(written, chosen):
        if text != completion:
            sys.exit(f"{prompt!r}: transformers writes {text!r} instead of {completion!r}")
    return {"checked": len(chosen), "cut": 2 * len(steps)}


def fault(prompt, completion):
    """V of the line that a completion proposes, by the rules of n-queens that do not know the reference."""
    side = int(re.search(r"n=(\d+)", prompt)[1])
    queens = [ord(letter) - ord("a") for letter in re.search(r"queens=(\w*)", prompt)[1]]
    line = re.fullmatch(r"(place|back) (\d+)(?: (\d+))?", completion.rsplit("\n", 1)[-1])
    if line is None or (line[1] == "place") != (line[3] is not None):
        return CRITICAL
    row = int(line[2])
    if line[1] == "back":
        if row >= side or not queens:
            return CRITICAL
        return 0.0 if row == len(queens) - 1 else MAJOR
    column = int(line[3])
    if row >= side or column >= side:
        return CRITICAL
    attacked = any(abs(c - column) in (0, len(queens) - r) for r, c in enumerate(queens))
    return attacked * CRITICAL + (row != len(queens)) * MAJOR


class Timed(trl.GRPOTrainer):
    """Notes the processor time of each iteration's parts."""

    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        self.iterations = []

    def _generate_single_turn(self, *arguments, **more):
        start = time.process_time()
        drawn = super()._generate_single_turn(*arguments, **more)
        self.iterations[-1]["generation_s"] = time.process_time() - start
        return drawn

    def _generate_and_score_completions(self, inputs):
        start = time.process_time()
        self.iterations.append({"samples": len(inputs)})
        batch = super()._generate_and_score_completions(inputs)
        end = time.process_time()
        self.iterations[-1].update(
            rollout_s=end - start,
            rolled=end,
            drawn=int(batch["completion_mask"].sum()),
            prompts=int(batch["prompt_mask"].sum()),
            padded=batch["prompt_mask"].numel() + batch["completion_mask"].numel(),
        )
        return batch


class Clock(transformers.TrainerCallback):
    """The end of an iteration is that of its last optimizer step."""

    trainer = None

    def on_step_end(self, *_, **__):
        iteration = self.trainer.iterations[-1]
        iteration["update_s"] = time.process_time() - iteration["rolled"]


def rewards(group):
    """The reward of steps: −V, plus a factor times the share of the group that proposed the same line."""

    def step(prompts, completions, **_):
        lines = [completion.rsplit("\n", 1)[-1] for completion in completions]
        groups = [lines[index - index % group :][:group] for index in range(len(lines))]
        shares = [own.count(line) / len(own) for line, own in zip(lines, groups)]
        return [CONSISTENCY * share - fault(*pair) for share, pair in zip(shares, zip(prompts, completions))]

    return step


def train(file, plan, micro, iterations):
    """Iterations of GRPO from the shipped weights, `micro` samples a pass through the network."""
    samples = plan["groups"] * plan["group"]
    per_step = samples // plan["optimizer_steps"]
    model = llama(file)
    if plan["compute"] == "bf16":
        # Faster here than f32 weights with autocast.
        model = model.to(torch.bfloat16)
    with tempfile.TemporaryDirectory() as folder:
        arguments = trl.GRPOConfig(
            output_dir=folder,
            use_cpu=True,
            bf16=False,
            seed=plan["seed"],
            max_steps=iterations * plan["passes"] * plan["optimizer_steps"],
            per_device_train_batch_size=micro,
            gradient_accumulation_steps=per_step // micro,
            steps_per_generation=samples // micro,
            num_iterations=plan["passes"],
            num_generations=plan["group"],
            max_completion_length=plan["tokens_max"],
            temperature=plan["temperature"],
            beta=plan["kl"],
            epsilon=plan["clip"],
            loss_type="grpo",
            learning_rate=plan["learning_rate"],
            lr_scheduler_type="constant",
            optim="adamw_torch_fused",
            torch_compile=plan["compile"],
            gradient_checkpointing=False,
            eval_strategy="no",
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        steps = [step for step in steps_of(plan) if step["difficulty"] == plan["level"] and step["step"] < plan["steps_max"]]
        prompts = sorted({content(step["prompt"]) for step in steps})
        clock = Clock()
        trainer = Timed(
            model=model,
            reward_funcs=rewards(plan["group"]),
            args=arguments,
            train_dataset=datasets.Dataset.from_dict({"prompt": prompts}),
            processing_class=tokenizer_of(file),
            callbacks=[clock],
        )
        clock.trainer = trainer
        with contextlib.redirect_stdout(sys.stderr):
            trainer.train()
    return trainer.iterations


def main():
    plan = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    torch.set_flush_denormal(True)
    datasets.disable_progress_bars()
    transformers.logging.set_verbosity_error()
    file = Gguf(plan["model"])
    result = {module.__name__: module.__version__ for module in (trl, transformers, torch)} | check(file, plan)
    per_step = plan["groups"] * plan["group"] // plan["optimizer_steps"]
    sizes = [size for size in plan["micro"] if per_step % size == 0 and size % plan["group"] == 0]
    if not sizes:
        sys.exit(f"--micro: none divides {per_step} samples of an optimizer step in whole groups")
    trials = {}
    for size in sizes if len(sizes) > 1 else ():
        # The first iteration makes what the others use again.
        last = train(file, plan, size, plan["warmup"] + 1)[-1]
        trials[size] = last["rollout_s"] + last["update_s"]
        print(f"TRL, {plan['compute']}, {size} samples a pass: {trials[size]:.2f} s an iteration", file=sys.stderr)
    micro = min(trials, key=trials.get) if trials else sizes[0]
    iterations = train(file, plan, micro, plan["warmup"] + plan["iterations"])[plan["warmup"] :]
    result |= {"micro": micro, "iterations": iterations}
    pathlib.Path(plan["out"]).write_text(json.dumps(result), encoding="utf-8")


main()
