"""asyncio: three tasks joined by queues. What is left of a framework in Python if it does nothing."""

import asyncio

from common import PAYLOAD, Phase, Request, drive, execute, report, verify


async def executor(requests, actions):
    while True:
        await actions.put(execute(await requests.get()))


async def verifier(actions, verdicts):
    while True:
        await verdicts.put(verify(await actions.get()))


async def coordinator(phase, verdicts, requests):
    while True:
        request = phase.decide(await verdicts.get())
        if request is not None:
            await requests.put(request)


async def run(_variant, spec):
    ended = asyncio.Event()
    phase = Phase(spec, ended.set)
    entries, tasks = [], []
    for _ in range(spec.trios):
        requests, actions, verdicts = asyncio.Queue(), asyncio.Queue(), asyncio.Queue()
        roles = executor(requests, actions), verifier(actions, verdicts), coordinator(phase, verdicts, requests)
        tasks += [asyncio.create_task(role) for role in roles]
        entries.append(requests)

    def start(trajectory, step):
        return entries[trajectory % len(entries)].put(Request(trajectory, step, PAYLOAD))

    entry = await drive(phase, start, ended)
    for task in tasks:
        task.cancel()
    return entry


report(run)
