"""The settings of a training, and their presets."""

import dataclasses
import hashlib
import json

from .errors import InputError

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@dataclasses.dataclass(frozen=True)
class Recipe:
    """The settings of a training. Equal recipes, data and bases give equal adapters."""

    # Rank of the two factors, from 1.
    rank: int = 8
    # The product of the factors counts `alpha / rank` times.
    alpha: float = 16.0
    # Share of the inputs of an adapter that is dropped in training, from 0 to below 1.
    dropout: float = 0.0
    # Linear layers that get an adapter: the last parts of their names.
    targets: tuple[str, ...] = PROJECTIONS
    # Peak of the learning rate, which rises for `warmup` optimizer steps and falls as a cosine.
    learning_rate: float = 1e-3
    warmup: int = 10
    weight_decay: float = 0.01
    clip_norm: float = 1.0
    # Samples of a pass through the network, and passes of an optimizer step.
    batch: int = 8
    accumulation: int = 1
    # Optimizer steps; 0: as many as `epochs` need.
    steps: int = 0
    epochs: float = 1.0
    # Samples with more tokens are refused, so that nothing is cut in silence.
    tokens_max: int = 2048
    # Seeds the adapter's first weights and the order of the samples.
    seed: int = 42

    def __post_init__(self):
        least = {"rank": 1, "batch": 1, "accumulation": 1, "steps": 0, "warmup": 0, "tokens_max": 2}
        for name, bound in least.items():
            if getattr(self, name) < bound:
                raise InputError(f"{name} is {getattr(self, name)}: it must be at least {bound}")
        for name in ("alpha", "learning_rate", "clip_norm", "epochs"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} is {getattr(self, name)}: it must be above 0")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout is {self.dropout}: it must be from 0 to below 1")
        if not self.targets:
            raise InputError("targets is empty: name the layers that get an adapter")

    def digest(self):
        """Sixteen hexadecimal digits, which differ between recipes."""
        text = json.dumps(dataclasses.asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


# The paper's table "Training Configuration" and, for GRPO, "Hyperparameter Settings". The paper
# gives no rank: 16 with alpha 32 is usual. 4 samples a pass and 64 passes make its effective batch
# of 256.
PRESETS = {
    "default": Recipe(),
    "paper": Recipe(
        rank=16,
        alpha=32.0,
        learning_rate=1e-5,
        warmup=1000,
        weight_decay=0.01,
        clip_norm=1.0,
        batch=4,
        accumulation=64,
        steps=50_000,
        seed=42,
    ),
}


@dataclasses.dataclass(frozen=True)
class Reinforcement:
    """The settings that GRPO adds to a recipe. The values are the paper's."""

    # Completions of a prompt that are compared with one another, from 2.
    group: int = 8
    clip: float = 0.2
    kl: float = 0.01
    temperature: float = 0.7
    top_p: float = 0.95
    # Tokens of a completion at most.
    completion_tokens: int = 64

    def __post_init__(self):
        if self.group < 2:
            raise InputError(f"group is {self.group}: a group compares at least 2 completions")
