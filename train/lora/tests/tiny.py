"""A random llama model of 25,000 weights as a GGUF file, with a tokenizer of bytes."""

import gguf
import numpy

WIDTH, LAYERS, HEADS, KEY_HEADS, INNER = 32, 2, 4, 2, 64
SPECIAL = ("<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nBe brief.<|im_end|>\n' }}"
    "{% endif %}{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + "
    "message['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def alphabet():
    """GPT-2's letters for the 256 bytes, in the order of the bytes."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    letters = {byte: chr(byte) for byte in shown}
    letters |= {byte: chr(256 + place) for place, byte in enumerate(hidden)}
    return [letters[byte] for byte in range(256)]


def write(path, template=TEMPLATE, seed=1):
    """Writes the model. The weights are large enough that scores differ between tokens."""
    rng = numpy.random.default_rng(seed)
    letters = alphabet()
    tokens = [*letters, *SPECIAL, letters[ord("a")] + letters[ord("b")]]
    kinds = [1] * 256 + [3, 3, 1]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(512)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([f"{letters[ord('a')]} {letters[ord('b')]}"])
    writer.add_bos_token_id(256)
    writer.add_eos_token_id(257)
    writer.add_add_bos_token(False)
    if template:
        writer.add_chat_template(template)

    def add(name, *shape):
        values = rng.normal(0, 1.0 / numpy.sqrt(shape[-1]), shape).astype(numpy.float32)
        writer.add_tensor(name, values)

    writer.add_tensor("token_embd.weight", rng.normal(0, 1, (len(tokens), WIDTH)).astype("f4"))
    writer.add_tensor("output_norm.weight", numpy.ones(WIDTH, dtype="f4"))
    keys = WIDTH // HEADS * KEY_HEADS
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        writer.add_tensor(f"{block}.attn_norm.weight", numpy.ones(WIDTH, dtype="f4"))
        writer.add_tensor(f"{block}.ffn_norm.weight", numpy.ones(WIDTH, dtype="f4"))
        for name, rows in (("q", WIDTH), ("k", keys), ("v", keys)):
            add(f"{block}.attn_{name}.weight", rows, WIDTH)
        add(f"{block}.attn_output.weight", WIDTH, WIDTH)
        add(f"{block}.ffn_gate.weight", INNER, WIDTH)
        add(f"{block}.ffn_up.weight", INNER, WIDTH)
        add(f"{block}.ffn_down.weight", WIDTH, INNER)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
