"""Batches in which the common prefix of all prompts is computed once.

Chats begin with the same system message, which is half of a short sample. A batch is one row: the
common prefix, then each sample's own tokens, which see the prefix and themselves, at the positions
that they have alone. The losses are those of padded rows, to rounding.
"""

import os

import torch


def common_prefix(samples):
    """Tokens that all prompts begin with. Each prompt keeps at least one token of its own, because
    the last token of a prompt predicts the first of its answer."""
    shortest = min(len(sample.prompt) for sample in samples)
    return min(len(os.path.commonprefix([sample.prompt for sample in samples])), shortest - 1)


class SharedPrefix:
    """Makes a batch of samples that begin with the same `length` tokens."""

    def __init__(self, length):
        self.length = length

    def __call__(self, features):
        length = self.length
        ids, labels = list(features[0]["input_ids"][:length]), [-100] * length
        positions, owners = list(range(length)), [0] * length
        for owner, feature in enumerate(features, start=1):
            own = feature["input_ids"][length:]
            ids += own
            labels += feature["labels"][length:]
            positions += range(length, length + len(own))
            owners += [owner] * len(own)

        owner = torch.tensor(owners)
        seen = (owner[:, None] == owner[None, :]) | (owner[None, :] == 0)
        mask = torch.tril(seen)
        return {
            "input_ids": torch.tensor([ids]),
            "labels": torch.tensor([labels]),
            "position_ids": torch.tensor([positions]),
            # Attention adds it to its scores: of batch, heads, queries and keys.
            "attention_mask": torch.zeros(mask.shape).masked_fill(
                ~mask, torch.finfo(torch.bfloat16).min
            )[None, None],
        }


def collator(config, samples):
    """The collator for a model, or `None` where rows must be padded: a window of attention counts
    places in the row, which are not positions here."""
    if getattr(config, "sliding_window", None):
        return None
    return SharedPrefix(common_prefix(samples))
