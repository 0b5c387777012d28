"""Exported adapters: names, shapes and scale, and llama.cpp's scores against PEFT's."""

import dataclasses
import json

import gguf
import numpy
import pytest
import torch
from peft import PeftModel
from prime_lora import check, export, gguf_adapter, training
from prime_lora.errors import InputError
from prime_lora.recipe import PRESETS

RECIPE = dataclasses.replace(PRESETS["default"], rank=4, alpha=8)
TEXTS = ("2 + 1", "union-find find 10 9\n", "hello", "é")


@pytest.fixture(scope="module")
def adapter(base, tmp_path_factory):
    """An adapter with random factors, none of them zero, so that an error in any of them shows."""
    folder = tmp_path_factory.mktemp("adapter")
    model = training.with_adapter(base.model("cpu"), RECIPE)
    torch.manual_seed(3)
    for name, value in model.named_parameters():
        if "lora_" in name:
            value.data.normal_(0, 0.3)
    model.save_pretrained(folder)
    return folder


def exported(base, adapter, path, kind="f32"):
    export.write(adapter, base.config(), path, name="tiny-adapter", kind=kind)
    return path


def test_the_file_is_an_adapter_as_llama_cpp_wants_it(base, adapter, tmp_path):
    reader = gguf.GGUFReader(exported(base, adapter, tmp_path / "a.gguf"))

    def text(key):
        return bytes(reader.fields[key].parts[-1]).decode()

    assert text("general.architecture") == "llama"
    assert text("general.type") == "adapter"
    assert text("adapter.type") == "lora"
    assert text("general.name") == "tiny-adapter"
    assert float(reader.fields["adapter.lora.alpha"].parts[-1][0]) == 8.0
    tensors = {tensor.name: list(map(int, tensor.shape)) for tensor in reader.tensors}
    # Seven matrices in each of two layers, two factors each.
    assert len(tensors) == 28
    # GGUF's shapes begin with the inner one: 32 inputs, rank 4, 64 outputs.
    assert tensors["blk.1.ffn_up.weight.lora_a"] == [32, 4]
    assert tensors["blk.1.ffn_up.weight.lora_b"] == [4, 64]
    assert "prime_agents.prompt" not in reader.fields


def test_the_file_says_which_prompt_it_was_trained_on(base, adapter, tmp_path):
    path = tmp_path / "a.gguf"
    export.write(
        adapter, base.config(), path, name="tiny", about={"prime_agents.prompt": "compact"}
    )
    parts = gguf.GGUFReader(path).fields["prime_agents.prompt"].parts
    assert bytes(parts[-1]).decode() == "compact"


def test_rows_of_a_head_go_from_halves_to_pairs():
    # A head of six rows: 0 1 2 are the first half, 3 4 5 the second.
    factor = numpy.arange(12).reshape(12, 1)
    assert export.permuted(factor, 2)[:, 0].tolist() == [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]


def test_the_file_changes_the_matrices_as_peft_does(base, adapter, tmp_path):
    found = check.compare(base, adapter, exported(base, adapter, tmp_path / "a.gguf"))
    assert found["matrices"] == 14 and found["worst_relative"] < 1e-5
    halved = check.compare(base, adapter, exported(base, adapter, tmp_path / "b.gguf", "f16"))
    assert halved["agrees"] and halved["worst_relative"] > 1e-6


def test_a_gguf_adapter_becomes_a_folder_of_peft_again(base, adapter, tmp_path):
    file = exported(base, adapter, tmp_path / "a.gguf")
    folder = gguf_adapter.unpack(file, base.config(), tmp_path / "unpacked")
    ids = torch.tensor([[65, 97, 98, 10, 48]])
    scores = [
        PeftModel.from_pretrained(base.model("cpu"), path)(ids).logits for path in (adapter, folder)
    ]
    assert torch.equal(*scores)
    assert not torch.allclose(scores[0], base.model("cpu")(ids).logits, atol=1e-2)


def test_a_model_is_no_adapter_to_start_from(base, tmp_path):
    with pytest.raises(InputError, match="no adapter.lora.alpha"):
        gguf_adapter.unpack(base.path, base.config(), tmp_path)


def test_a_wrong_file_does_not_agree(base, adapter, tmp_path, monkeypatch):
    monkeypatch.setattr(export, "permuted", lambda factor, heads: factor)
    found = check.compare(base, adapter, exported(base, adapter, tmp_path / "a.gguf"))
    assert not found["agrees"]


def test_llama_cpp_scores_tokens_as_peft_does(base, adapter, tmp_path):
    xllamacpp = pytest.importorskip("xllamacpp")
    path = exported(base, adapter, tmp_path / "a.gguf")
    tokenizer = base.tokenizer()
    tuned = PeftModel.from_pretrained(base.model("cpu"), adapter).eval()
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(base.path)
    parameters.n_ctx, parameters.n_parallel, parameters.warmup = 512, 1, False
    parameters.cpuparams.n_threads = 1
    parameters.cache_type_k = parameters.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    off = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    parameters.flash_attn_type = off
    parameters.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(str(path), 1.0)]
    server = xllamacpp.Server(parameters)

    for text in TEXTS:
        ids, wanted = check.scores(tuned, tokenizer, text)
        with tuned.disable_adapter():
            _, without = check.scores(tuned, tokenizer, text)
        asked = {"prompt": ids, "n_predict": 1, "n_probs": 20, "temperature": -1.0}
        answer = server.handle_completions(asked)
        top = answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        assert len(top) == 20
        apart = [abs(token["logprob"] - wanted[token["id"]].item()) for token in top]
        assert max(apart) < 0.02, text
        assert max(abs(t["logprob"] - without[t["id"]].item()) for t in top) > 0.5, text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"use_dora": True}, "no DoRA"),
        ({"bias": "all"}, "no trained biases"),
        ({"modules_to_save": ["lm_head"]}, "whole layers"),
        ({"peft_type": "LOHA"}, "type LOHA, not LORA"),
    ],
)
def test_what_llama_cpp_cannot_apply_is_refused(base, adapter, tmp_path, change, message):
    for name in adapter.iterdir():
        (tmp_path / name.name).write_bytes(name.read_bytes())
    config = json.loads((tmp_path / "adapter_config.json").read_text())
    (tmp_path / "adapter_config.json").write_text(json.dumps(config | change))
    with pytest.raises(InputError, match=message):
        exported(base, tmp_path, tmp_path / "a.gguf")
    assert not (tmp_path / "a.gguf").exists()


def test_files_that_are_no_adapters_are_refused(base, adapter, tmp_path):
    with pytest.raises(InputError, match="has no adapter_config.json"):
        exported(base, tmp_path, tmp_path / "a.gguf")
    with pytest.raises(InputError, match="has no adapter_config.json"):
        check.compare(base, tmp_path, tmp_path / "a.gguf")
    with pytest.raises(InputError, match="cannot be read as a GGUF file"):
        check.compare(base, adapter, tmp_path)
    (tmp_path / "torn.gguf").write_bytes(b"GGUF")
    with pytest.raises(InputError, match="cannot be read as a GGUF file"):
        check.compare(base, adapter, tmp_path / "torn.gguf")
    with pytest.raises(InputError, match="is not an adapter"):
        check.compare(base, adapter, base.path)


def test_patterns_and_rank_stabilised_scales_go_into_the_second_factor():
    config = {"r": 4, "lora_alpha": 8, "rank_pattern": {"q_proj": 2}, "alpha_pattern": {}}
    assert export.of_module(config, "model.layers.0.self_attn.q_proj") == [2, 8]
    assert export.of_module(config, "model.layers.0.self_attn.k_proj") == [4, 8]


def test_an_activated_adapter_keeps_its_invocation(base, adapter, tmp_path):
    for name in adapter.iterdir():
        (tmp_path / name.name).write_bytes(name.read_bytes())
    config = json.loads((tmp_path / "adapter_config.json").read_text())
    changed = config | {"alora_invocation_tokens": [256, 65, 66]}
    (tmp_path / "adapter_config.json").write_text(json.dumps(changed))
    reader = gguf.GGUFReader(exported(base, tmp_path, tmp_path / "a.gguf"))
    field = reader.fields["adapter.alora.invocation_tokens"]
    assert [int(field.parts[place][0]) for place in field.data] == [256, 65, 66]


def test_models_of_unknown_layout_are_refused():
    with pytest.raises(InputError, match="cannot export adapters of falcon models"):
        export.architecture_of("falcon")
    assert export.architecture_of("mistral") == "llama"
