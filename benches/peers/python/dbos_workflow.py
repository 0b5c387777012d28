"""dbos: a durable workflow whose executor, verifier and coordinator are steps, each recorded in SQLite."""

from dbos import DBOS, DBOSConfig

from common import PAYLOAD, Folder, Phase, Verdict, gather, report

# The current phase. DBOS records the arguments of a step, so this is not one of them.
PHASE = None


@DBOS.step()
async def executor(_trajectory, _step, payload):
    return payload


@DBOS.step()
async def verifier(_trajectory, _step, _payload):
    return 0.0


@DBOS.step()
async def coordinator(trajectory, step, score, payload):
    return PHASE.decide(Verdict(trajectory, step, score, payload)) is not None


@DBOS.workflow()
async def walk(trajectory, step):
    payload, proceeds = PAYLOAD, True
    while proceeds:
        payload = await executor(trajectory, step, payload)
        score = await verifier(trajectory, step, payload)
        proceeds = await coordinator(trajectory, step, score, payload)
        step += 1
    return step


async def run(_variant, spec):
    global PHASE
    if spec.kind == "shared":
        return None
    PHASE = Phase(spec)
    with Folder() as folder:
        url = f"sqlite:///{folder}/steps.sqlite"
        DBOS(config=DBOSConfig(name="peers", system_database_url=url, log_level="ERROR", run_admin_server=False))
        DBOS.launch()
        try:
            return await gather(PHASE, lambda trajectory, first, _target: walk(trajectory, first))
        finally:
            DBOS.destroy()


report(run)
