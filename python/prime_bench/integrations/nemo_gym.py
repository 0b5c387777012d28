"""A resources server of NeMo Gym (0.7): `PrimeResourcesServer.run_webserver()`.

The agent `gymnasium_agent` resets it with a row's `task`, `difficulty`, `index` and `base_seed` and steps with the model's
responses; the action is the last line of a response, and every step has its reward.
"""

from __future__ import annotations

from typing import Any, ClassVar

from resources_servers.gymnasium.base import GymnasiumServer, extract_text

from prime_bench.dataset import instance_of

from ._episode import Episode, action_line


class PrimeResourcesServer(GymnasiumServer):  # type: ignore[misc]
    """Step environments, one for each session."""

    ray_enabled: ClassVar[bool] = False
    """Else NeMo Gym starts a Ray cluster for it."""

    async def reset(self, metadata: dict[str, Any], session_id: str | None = None) -> tuple[str | None, dict[str, Any]]:
        """Starts a row's instance. Its first state is appended to the prompt, unless the row's `style` says that it is there."""
        episode = Episode(instance_of(metadata))
        self.session_state[session_id] = episode
        opening = None if metadata.get("style") == "turns" else episode.opening
        return opening, {"task": episode.instance.task}

    async def step(
        self, action: Any, metadata: dict[str, Any], session_id: str | None = None
    ) -> tuple[str | None, float, bool, bool, dict[str, Any]]:
        episode = self.session_state.get(session_id)
        if episode is None:
            raise ValueError("step: reset the environment first")
        turn = episode.step(action_line(extract_text(action)))
        info = {"steps": len(episode.rewards), "total": episode.total(), "step_rewards": list(episode.rewards)}
        return turn.text, turn.reward, turn.done, False, info


if __name__ == "__main__":
    PrimeResourcesServer.run_webserver()
