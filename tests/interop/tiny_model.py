"""A tiny random model with a tokenizer, made on the spot, so that nothing is downloaded: `tiny_model.py FOLDER`."""

import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

VOCABULARY = 600
# A chat template whose turns are marked by their role, and the tokens that it needs.
DIALOGUE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
DIALOGUE_TOKENS = ("<|end|>", "<|pad|>", "<|user|>", "<|assistant|>")


def tokenizer_of(texts, template, special):
    """A byte-level tokenizer with a chat template; the first two special tokens are those of an end and of padding."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=list(special), initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=special[0], pad_token=special[1])
    made.chat_template = template
    return made


def configuration(tokenizer, width=32, layers=1):
    return LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=2,
        max_position_embeddings=4096,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        architectures=["LlamaForCausalLM"],
    )


def saved_model(tokenizer, folder, **size):
    """The folder of a random model: trainers load references from where a model came from."""
    LlamaForCausalLM(configuration(tokenizer, **size)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


TOOLS = ("<|im_end|>", "<|endoftext|>", "<|im_start|>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
"""Special tokens of Qwen's chat template, which has tools."""


def tool_tokenizer(texts):
    from trl.chat_template_utils import qwen3_instruct_2507_chat_template

    return tokenizer_of(texts, qwen3_instruct_2507_chat_template, TOOLS)


if __name__ == "__main__":
    from prime_bench import tasks

    saved_model(tool_tokenizer([task.algorithm for task in tasks()]), sys.argv[1])
