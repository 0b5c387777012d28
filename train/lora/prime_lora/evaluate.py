"""Exact answers on held-out samples, as greedy decoding would give them."""

import dataclasses
import math

import torch

# Held-out samples that are graded, over all tasks.
GRADED = 200


@dataclasses.dataclass(frozen=True)
class Share:
    """`right` of `of`."""

    right: int
    of: int

    def interval(self):
        """Wilson's 95 % interval of the share, from 0 to 1."""
        if self.of == 0:
            return (0.0, 1.0)
        z = 1.959964
        share, spread = self.right / self.of, z * z / self.of
        centre = share + spread / 2
        half = z * math.sqrt(share * (1 - share) / self.of + spread / (4 * self.of))
        low, high = ((centre + sign * half) / (1 + spread) for sign in (-1, 1))
        return (max(0.0, low), min(1.0, high))

    def text(self):
        low, high = self.interval()
        share = 100 * self.right / self.of if self.of else 0.0
        return f"{self.right} of {self.of}: {share:.1f} % ({100 * low:.1f}–{100 * high:.1f})"


@torch.no_grad()
def exact(model, samples, pad, batch=16):
    """Finds the samples that are answered exactly.

    Greedy decoding writes the right answer if and only if the likeliest token after each of its
    beginnings is the next one of it, so one pass over prompt and answer decides.
    """
    model.eval()
    device = next(model.parameters()).device
    right = [False] * len(samples)
    order = sorted(range(len(samples)), key=lambda place: len(samples[place]))
    for start in range(0, len(order), batch):
        places = order[start : start + batch]
        longest = max(len(samples[place]) for place in places)
        ids = torch.full((len(places), longest), pad)
        mask = torch.zeros((len(places), longest), dtype=torch.long)
        for row, place in enumerate(places):
            tokens = samples[place].columns()["input_ids"]
            ids[row, : len(tokens)] = torch.tensor(tokens)
            mask[row, : len(tokens)] = 1
        # Only scores of positions that predict an answer are computed.
        most = max(longest - len(samples[place].prompt) + 1 for place in places)
        scores = model(
            input_ids=ids.to(device), attention_mask=mask.to(device), logits_to_keep=most
        ).logits
        likeliest = scores.argmax(-1).cpu()
        for row, place in enumerate(places):
            sample = samples[place]
            first = len(sample.prompt) - 1 - (longest - most)
            wanted = list(sample.completion)
            right[place] = likeliest[row, first : first + len(wanted)].tolist() == wanted
    return right


def by_task(samples, right):
    """The share of each task, and of all."""
    tasks = {}
    for sample, is_right in zip(samples, right, strict=True):
        count = tasks.setdefault(sample.task, [0, 0])
        count[0] += is_right
        count[1] += 1
    shares = {task: Share(*count) for task, count in sorted(tasks.items())}
    return shares, Share(sum(right), len(right))
