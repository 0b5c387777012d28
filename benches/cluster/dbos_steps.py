"""dbos on PostgreSQL: a durable workflow whose executor, verifier and coordinator are steps."""

from common import PAYLOAD, measure, report
from dbos import DBOS, DBOSConfig

# The measurement under way. Arguments of a step are recorded, so this is not one.
WINDOW = None


@DBOS.step()
async def executor(payload):
    return payload


@DBOS.step()
async def verifier(_payload):
    return 0.0


@DBOS.step()
async def coordinator(_score):
    return WINDOW.is_open()


@DBOS.workflow()
async def trajectory(_index):
    payload, proceeds = PAYLOAD, True
    while proceeds:
        payload = await executor(payload)
        proceeds = await coordinator(await verifier(payload))


async def walk(window, index):
    global WINDOW
    WINDOW = window
    await trajectory(index)


async def run(url, trajectories, seconds):
    DBOS(config=DBOSConfig(name="peers", system_database_url=url, log_level="ERROR", run_admin_server=False))
    DBOS.launch()
    try:
        return await measure(walk, trajectories, seconds)
    finally:
        DBOS.destroy()


report(run)
