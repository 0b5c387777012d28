"""TRL trains on what `prime-agents data` writes and with this package's rewards: a few steps of a tiny random model, whose
tokenizer is made here too, so that nothing is downloaded.

    trainers.py PRIME    the program
"""

import math
import pathlib
import subprocess
import sys
import tempfile

from datasets import Dataset, load_dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import DPOConfig, DPOTrainer, GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

from prime_bench import Instance, composite_reward, create_dataset, judge
from prime_bench.integrations.trl import composite, correct, rows

STEPS = 3
TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def exported(prime, kind, folder, *options):
    out = folder / kind
    small = ["--task", "bubble-sort", "--difficulty", "easy", "--instances", "4"]
    subprocess.run([prime, "data", kind, "--out", out, *small, *options], check=True, capture_output=True)
    return load_dataset(str(out), split="train")


def tokenizer_of(texts):
    """A byte-level tokenizer with a chat template."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|end|>", "<|pad|>", "<|user|>", "<|assistant|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", pad_token="<|pad|>")
    made.chat_template = TEMPLATE
    return made


def saved_model(tokenizer, folder):
    """The folder of a random model: TRL loads references from where a model came from."""
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=4096,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    path = str(folder / "model")
    LlamaForCausalLM(config).save_pretrained(path)
    return path


def settings(folder, **more):
    return {
        "output_dir": str(folder / "out"),
        "max_steps": STEPS,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": True,
        "bf16": False,
        "learning_rate": 1e-2,
        **more,
    }


def logged(trainer, name):
    """The values of a figure, one a step."""
    trainer.train()
    values = [entry[name] for entry in trainer.state.log_history if name in entry]
    assert trainer.state.global_step == STEPS and len(values) == STEPS, trainer.state.log_history
    assert all(map(math.isfinite, values)), values
    return values


def sft(model, data, tokenizer, folder):
    arguments = SFTConfig(**settings(folder, per_device_train_batch_size=4, max_length=1024))
    trainer = SFTTrainer(model, args=arguments, train_dataset=data, processing_class=tokenizer)
    losses = logged(trainer, "loss")
    # A random model knows nothing of 600 tokens, and three steps teach it which are frequent.
    assert losses[-1] < losses[0] < 1.2 * math.log(len(tokenizer)), losses
    print("ok  TRL: SFTTrainer, loss", losses)


def dpo(model, data, tokenizer, folder):
    arguments = DPOConfig(**settings(folder, per_device_train_batch_size=4, max_length=1024))
    trainer = DPOTrainer(model, args=arguments, train_dataset=data, processing_class=tokenizer)
    losses = logged(trainer, "loss")
    # Before the first update, the policy is its own reference.
    assert abs(losses[0] - math.log(2)) < 1e-3, losses
    print("ok  TRL: DPOTrainer, loss", losses)


def grpo(model, tokenizer, folder):
    """The rewards in the log are this package's, of the completions that were drawn."""
    seen = []

    def watched(prompts, completions, **columns):
        rewards = composite(prompts, completions, **columns)
        names = zip(columns["task"], columns["difficulty"], columns["index"], columns["base_seed"], strict=True)
        seen.extend(zip([completion[-1]["content"] for completion in completions], names, rewards, strict=True))
        return rewards

    arguments = GRPOConfig(
        **settings(folder, per_device_train_batch_size=4, num_generations=2, max_completion_length=16, temperature=1.0)
    )
    data = Dataset.from_list(rows(create_dataset("bubble-sort", size=8, seed=5)))
    trainer = GRPOTrainer(
        model,
        reward_funcs=[watched, correct],
        args=arguments,
        train_dataset=data,
        processing_class=tokenizer,
    )
    means = logged(trainer, "rewards/watched/mean")
    assert len(seen) >= 4 * STEPS, len(seen)
    for text, name, reward in seen:
        instance = Instance(*name)
        assert reward == composite_reward(text, instance).total and not judge(text, instance).correct, text
    rewards = [reward for _, _, reward in seen]
    assert min(rewards) - 1e-4 <= min(means) and max(means) <= max(rewards) + 1e-4, (means, rewards)
    print("ok  TRL: GRPOTrainer, mean rewards", means)


def main():
    prime = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        supervised, preferred = exported(prime, "sft", folder), exported(prime, "dpo", folder)
        texts = [message["content"] for row in supervised for message in row["prompt"] + row["completion"]]
        tokenizer = tokenizer_of(texts)
        model = saved_model(tokenizer, folder)
        sft(model, supervised.select_columns(["prompt", "completion"]), tokenizer, folder)
        dpo(model, preferred.select_columns(["prompt", "chosen", "rejected"]), tokenizer, folder)
        grpo(model, tokenizer, folder)


main()
