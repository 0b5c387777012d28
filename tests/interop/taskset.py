"""The taskset of verifiers: its tasks score traces as this package does."""

import asyncio

import verifiers.v1 as vf

from prime_bench import composite_reward
from prime_bench.integrations.verifiers import PrimeConfig, PrimeTaskset

CONFIG = PrimeConfig(tasks=["bubble-sort", "n-queens"], size=3, seed=5)


class Reply(vf.Trace):
    """A trace whose last reply is given."""

    reply: str = ""

    @property
    def last_reply(self):
        return self.reply


async def scored(task, text):
    trace = Reply.model_construct(reply=text, info={}, rewards={}, metrics={})
    await task.score(trace)
    return trace


def main():
    tasks = list(PrimeTaskset(CONFIG))
    assert [task.data.idx for task in tasks] == list(range(6))
    assert [task.data.task for task in tasks] == ["bubble-sort"] * 3 + ["n-queens"] * 3
    for task in tasks:
        instance = task.instance()
        assert instance.prompt() == task.data.prompt
        trace = "\n".join(instance.reference())
        for text, right in ((f"<actions>\n{trace}\n</actions>", 1.0), ("no idea", 0.0)):
            found = asyncio.run(scored(task, text))
            assert found.rewards["prime"].score == composite_reward(text, instance).total
            assert found.metrics["correct"] == right, found.metrics
            assert len(found.info["step_rewards"]) == len(composite_reward(text, instance).steps)
    print("ok  verifiers")


main()
