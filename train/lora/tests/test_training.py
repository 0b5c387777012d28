"""A tiny random model learns for a few steps: what is learnt, resumed, graded."""

import dataclasses
import json

import pytest
import torch
from prime_lora import evaluate, rows, sft, shared_prefix, training
from prime_lora.errors import InputError
from prime_lora.recipe import PRESETS
from safetensors.torch import load_file

RECIPE = dataclasses.replace(
    PRESETS["default"], rank=4, alpha=8, batch=2, steps=4, warmup=0, learning_rate=1e-2
)


def row(asked, answer, **more):
    return {
        "prompt": [{"role": "user", "content": asked}],
        "completion": [{"role": "assistant", "content": answer}],
    } | more


def data_of(base):
    tokenizer = base.tokenizer()
    made = [rows.sample(tokenizer, row(f"{n} + 1", f"{n + 1}")) for n in range(8)]
    return sft.Data.of(made[:6], made[6:])


def weights(folder):
    return load_file(folder / "adapter/adapter_model.safetensors")


def test_a_sample_is_the_chat_as_the_program_sends_it_and_an_answer_that_ends(base):
    sample = rows.sample(base.tokenizer(), row("2 + 1", "3"))
    text = base.tokenizer().decode(sample.prompt)
    assert text == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n2 + 1<|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    # Byte tokens: "3", then the end of the turn; the newline after it is never asked for.
    assert sample.completion == (ord("3"), 257)
    assert sample.columns()["labels"] == [-100] * len(sample.prompt) + [51, 257]


def test_a_shared_prefix_changes_neither_loss_nor_gradient(base):
    model = base.model("cpu")
    samples = [
        rows.Sample((1, 2, 3, 4, 5), (6, 7)),
        rows.Sample((1, 2, 3, 9), (8, 7, 6)),
        rows.Sample((1, 2, 3, 9, 10, 11, 12), (1,)),
    ]
    length = shared_prefix.common_prefix(samples)
    assert length == 3
    collator = shared_prefix.collator(model, samples)
    batch = collator([sample.columns() for sample in samples])
    # 3 tokens once, then 4, 4 and 5 of the samples' own.
    assert batch["input_ids"].shape == (1, 16)
    together = model(**batch).loss
    together.backward()
    found = model.model.layers[0].self_attn.q_proj.weight.grad.clone()
    model.zero_grad()

    answers = sum(len(sample.completion) for sample in samples)
    alone = 0
    for sample in samples:
        columns = {name: torch.tensor([ids]) for name, ids in sample.columns().items()}
        alone = alone + model(**columns).loss * len(sample.completion) / answers
    alone.backward()
    assert together.item() == pytest.approx(alone.item(), rel=1e-5)
    wanted = model.model.layers[0].self_attn.q_proj.weight.grad
    assert torch.allclose(found, wanted, rtol=1e-3, atol=1e-6)


def test_a_prompt_keeps_a_token_of_its_own():
    equal = [rows.Sample((1, 2, 3), (4,)), rows.Sample((1, 2, 3), (5,))]
    assert shared_prefix.common_prefix(equal) == 2


def test_training_lowers_the_loss_and_writes_a_card(base, tmp_path):
    recipe = dataclasses.replace(RECIPE, steps=30)
    card = sft.train(base, data_of(base), recipe, tmp_path, "cpu", report=False)
    assert card["steps"] == 30 and card["samples"] == 6
    # A random model's loss is about ln 259 = 5.6.
    assert card["loss"] < 4
    assert card["exact"]["of"] == 2 and card["exact_of_base"] == {"right": 0, "of": 2}
    assert any(
        value.abs().max() > 0 for name, value in weights(tmp_path).items() if "lora_B" in name
    )


def test_a_resumed_training_equals_one_that_was_not_interrupted(base, tmp_path, monkeypatch):
    data = data_of(base)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    sft.train(base, data, RECIPE, whole, "cpu", report=False)

    ended = training.Progress.on_step_end

    def signalled(self, args, state, control, **more):
        # Like a signal in the second step.
        if state.global_step == 2:
            self.stop()
        ended(self, args, state, control, **more)

    monkeypatch.setattr(training.Progress, "on_step_end", signalled)
    assert sft.train(base, data, RECIPE, parts, "cpu", report=False) is None
    assert training.latest(parts / "checkpoints").name == "checkpoint-2"
    monkeypatch.undo()

    assert sft.train(base, data, RECIPE, parts, "cpu", report=False)["steps"] == 4
    for name, value in weights(whole).items():
        assert torch.equal(value, weights(parts)[name]), name


def test_a_checkpoint_that_was_not_finished_is_passed_over(tmp_path):
    for step in (2, 10, 12):
        (tmp_path / f"checkpoint-{step}").mkdir()
    for step in (2, 10):
        (tmp_path / f"checkpoint-{step}" / training.CLOCK).write_text('{"cpu_seconds": 1}')
    assert training.latest(tmp_path).name == "checkpoint-10"


def test_a_run_keeps_its_recipe(base, tmp_path):
    training.begin(tmp_path, RECIPE, "base", "data")
    training.begin(tmp_path, RECIPE, "base", "data")
    with pytest.raises(InputError, match="another recipe, base or data"):
        training.begin(tmp_path, dataclasses.replace(RECIPE, seed=43), "base", "data")


def test_exact_answers_are_those_of_greedy_decoding(base):
    tokenizer, model = base.tokenizer(), base.model("cpu")
    samples = []
    for n in range(6):
        prompt = rows.sample(tokenizer, row(f"{n}?", "x")).prompt
        written = model.generate(
            torch.tensor([prompt]), max_new_tokens=3, do_sample=False, pad_token_id=257
        )[0, len(prompt) :].tolist()
        if n % 2:
            written[-1] = (written[-1] + 1) % 256
        samples.append(rows.Sample(prompt, tuple(written)))
    right = evaluate.exact(model, samples, 257, batch=4)
    assert right == [True, False, True, False, True, False]


def test_the_interval_is_wilsons():
    low, high = evaluate.Share(52, 60).interval()
    # By hand: 0.8667 of 60 gives 0.7583 to 0.9309.
    assert (round(low, 4), round(high, 4)) == (0.7583, 0.9309)
    assert evaluate.Share(0, 0).interval() == (0.0, 1.0)


def test_the_card_is_json(base, tmp_path):
    card = sft.train(base, data_of(base), RECIPE, tmp_path, "cpu", report=False)
    assert json.loads(json.dumps(card))["recipe"]["rank"] == 4
