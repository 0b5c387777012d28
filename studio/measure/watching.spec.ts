// What watching a run costs the daemon: the same load with a browser that watches it and without one, in turn.

import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "../tests/daemon.ts";
import type { Daemon } from "../tests/daemon.ts";
import { line, quantile } from "./figures.ts";
import type { Page } from "@playwright/test";

const ROUNDS = Number(process.env["ROUNDS"] ?? 5);
const SECONDS = Number(process.env["SECONDS"] ?? 10);
const TRAJECTORIES = 100;

interface Sample {
  /** Durable steps a second. */
  rate: number;
  /** Processor time of the daemon, in microseconds a step. */
  cost: number;
}

/** Processor seconds of a process so far. */
function processorSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

async function sample(daemon: Daemon, page: Page, latency_ms: number, isWatched: boolean): Promise<Sample> {
  await daemon.start([
    "agents.executor.implementation=scripted",
    "agents.executor.error_rate=0.05",
    `agents.executor.latency_ms=${latency_ms}`,
    "run.budget.wall_ms=3600000",
    "run.budget.steps=1000000000000",
  ]);
  const id = await daemon.submit({ task: "tower-of-hanoi", input: { n: 24, from: 0, to: 2 }, fanout: TRAJECTORIES, max_rounds: 1 });
  if (isWatched) {
    await page.goto(`${daemon.url}/studio/runs/${id}`);
    await expect(page.locator(".tree li")).toHaveCount(TRAJECTORIES);
    await expect(page.locator(".live")).toBeVisible();
  }
  // The same time to settle, watched or not.
  await sleep(2000);
  const [events, seconds, start] = [(await daemon.record(id)).events, processorSeconds(daemon.pid), performance.now()];
  await sleep(1000 * SECONDS);
  const steps = (await daemon.record(id)).events - events;
  const result = { rate: (1000 * steps) / (performance.now() - start), cost: (1e6 * (processorSeconds(daemon.pid) - seconds)) / steps };
  await page.goto("about:blank");
  await daemon.kill();
  daemon.forget();
  return result;
}

for (const [what, latency_ms] of [
  ["1,000 steps a second in all", 100],
  ["1,000 steps a second each, as far as the timer goes", 1],
  ["as fast as it can", 0],
] as const) {
  test(`watching ${TRAJECTORIES} trajectories, ${what}`, async ({ daemon, watched: page }) => {
    test.setTimeout(3_600_000);
    const [alone, watched]: [Sample[], Sample[]] = [[], []];
    for (let round = 0; round < ROUNDS; round++) {
      // Which comes first changes, so that a drift of the machine hits both.
      for (const isWatched of round % 2 === 0 ? [false, true] : [true, false]) {
        (isWatched ? watched : alone).push(await sample(daemon, page, latency_ms, isWatched));
      }
    }
    const figures = (values: number[], digits: number) =>
      `${quantile(values, 0.5).toFixed(digits)} (${quantile(values, 0).toFixed(digits)} to ${quantile(values, 1).toFixed(digits)})`;
    const rates = (samples: Sample[]) => figures(samples.map(({ rate }) => rate), 0);
    const costs = (samples: Sample[]) => figures(samples.map(({ cost }) => cost), 2);
    const changes = alone.map(({ rate }, round) => 100 * ((watched[round]?.rate ?? NaN) / rate - 1));
    line(`${what}: durable steps a second, alone`, rates(alone));
    line(`${what}: durable steps a second, watched`, rates(watched));
    line(`${what}: change in %, of ${ROUNDS} pairs`, figures(changes, 1));
    line(`${what}: processor time of the daemon in µs a step, alone`, costs(alone));
    line(`${what}: processor time of the daemon in µs a step, watched`, costs(watched));
  });
}
