// Numbers with every digit, lists to their end, and words that match what was checked: the page
// against answers written
// by hand.

import type { Page } from "@playwright/test";
import { ERRING, ERRING_RUN, erring, expect, isAccessible, test } from "./daemon.ts";
import type { Daemon } from "./daemon.ts";

/** Above 2^53, where a JavaScript number ends in 92. */
const SEED = "9007199254740993";

/** Submits a request as it is written: `JSON.stringify` would round its numbers. */
async function submitText(daemon: Daemon, body: string): Promise<string> {
  const response = await fetch(`${daemon.url}/v1/runs`, { method: "POST", body });
  const text = await response.text();
  if (response.status !== 202) throw new Error(text);
  return (JSON.parse(text) as { id: string }).id;
}

async function spec(daemon: Daemon, id: string): Promise<string> {
  return (await fetch(`${daemon.url}/v1/runs/${id}/spec`)).text();
}

const idOf = (page: Page): string => /runs\/(run_[^?]+)/.exec(page.url())?.[1] ?? "";

test("Run again is the same run, to the last digit and option", async ({
  daemon,
  watched: page,
}) => {
  await daemon.start([...ERRING, 'server.allow_executors=["reference"]']);
  const request =
    `{"task": "bubble-sort", "difficulty": "hard", "index": 3, "base_seed": 7, "seed": ${SEED}, "fanout": 3, "max_rounds": 2,` +
    ' "temperature": 0.25, "top_p": 0.5, "strategy": "best_of_n", "vote": "weighted", "speculate": false,' +
    ' "budget": {"steps": 5000, "tokens": 70000, "wall_ms": 50000}, "agents": {"executor": "reference"}}';
  const id = await submitText(daemon, request);
  await daemon.finished(id);
  await page.goto(`${daemon.url}/studio/runs/${id}`);
  await expect(page.locator(".settings")).toContainText(SEED);
  await page.getByRole("link", { name: "Run again" }).click();
  await expect(page.getByLabel("Seed", { exact: true })).toHaveValue(SEED);
  await expect(page.getByLabel("Base seed")).toHaveValue("7");
  await isAccessible(page);
  await page.getByRole("button", { name: "Start the run" }).click();
  await expect(page.getByText(/The same run as/)).toBeVisible();
  const again = idOf(page);
  expect(again).not.toBe(id);
  // All that it was accepted with is the same text.
  expect(await spec(daemon, again)).toBe(await spec(daemon, id));
  // With a change, the page says which.
  await page.getByRole("link", { name: "Run again" }).click();
  await expect(page.getByLabel("Trajectories a round")).toHaveValue("3");
  await page.getByLabel("Trajectories a round").fill("2");
  await page.getByRole("button", { name: "Start the run" }).click();
  await page.getByText("with fanout: 2 instead of 3").click();
  await expect(page.getByRole("row", { name: "plan.fanout 3 2" })).toBeVisible();
});

test("integers of a problem stay as they are, in the form and in the run", async ({
  daemon,
  watched: page,
}) => {
  await daemon.start([
    "agents.executor.implementation=replay",
    'agents.executor.lines=["[1]"]',
    "run.max_rounds=1",
    "run.fanout=1",
  ]);
  const problem =
    '{"problem": {"statement": "One number.", "input": {"big": 9223372036854775807, "real": 1.0, "exact": 0.1},' +
    ' "max_proposals": 7, "answer": {"schema": {"type": "array"}},' +
    ' "constraints": [{"name": "one", "severity": "minor", "check": "size(answer) == 1", "message": "just one"}]}}';
  const id = await submitText(daemon, problem);
  await daemon.finished(id);
  await page.goto(`${daemon.url}/studio/runs/${id}`);
  await expect(page.getByRole("region", { name: "What was asked" })).toContainText(
    "9223372036854775807",
  );
  await page.goto(`${daemon.url}/studio/runs/new?from=${id}`);
  await expect(page.getByLabel("Data (JSON)")).toHaveValue(
    '{"big":9223372036854775807,"real":1.0,"exact":0.1}',
  );
  await expect(page.getByText('{"max_proposals":7}')).toBeVisible();
  await page.getByRole("button", { name: "Start the run" }).click();
  await expect(page.getByText(/The same run as/)).toBeVisible();
  expect(await spec(daemon, idOf(page))).toBe(await spec(daemon, id));
});

test("values of bars are whole, and a list goes on to its end", async ({
  daemon,
  watched: page,
}) => {
  await daemon.start(["agents.executor.implementation=reference"]);
  const open = async (a: number[]) => {
    const id = await daemon.submit({ task: "bubble-sort", input: { a }, fanout: 1 });
    await daemon.finished(id);
    await page.goto(`${daemon.url}/studio/runs/${id}?t=1.0&at=0`);
    const state = page.getByRole("region", { name: "State before" });
    await expect(state.locator("dl.state")).toBeVisible();
    return state;
  };
  let state = await open([131072, -131071, 5]);
  await expect(state.locator("svg.bars text")).toHaveText(["131072", "-131071", "5"]);
  // Equal values are no bars: five full ones would look like five large numbers.
  state = await open([-1, -1, -1, -1, -2]);
  await expect(state.locator("svg.bars .negative")).toHaveCount(5);
  // Sixty numbers of four digits have no room for labels: they are a list.
  const many = Array.from({ length: 60 }, (_, at) => (at * 7919) % 10_007);
  state = await open(many);
  await expect(state.getByText(/^\[0, 7919, 5831, /)).toBeVisible();
});

const NUMBERS = Array.from({ length: 900 }, (_, at) => at);

test("what is cut can be shown to its end", async ({ daemon, watched: page }) => {
  const id = await erring(daemon);
  await page.route(`**/v1/runs/${id}/spec`, async (route) => {
    const response = await route.fetch();
    const text = await response.text();
    const long = JSON.stringify({ list: NUMBERS, text: "x".repeat(900) });
    await route.fulfill({ response, body: text.replace(/"input":\{[^}]*\}/, `"input":${long}`) });
  });
  await page.goto(`${daemon.url}/studio/runs/${id}`);
  const asked = page.getByRole("region", { name: "What was asked" });
  await expect(asked).toContainText("398, 399, …");
  await asked.getByRole("button", { name: "Show the other 500" }).click();
  await expect(asked).toContainText("898, 899]");
  await asked.getByRole("button", { name: "Show all 902 characters" }).click();
  await expect(asked).toContainText("x".repeat(900));
});

test("without a verifier, no word and no sign says that a line is right", async ({
  daemon,
  watched: page,
}) => {
  await daemon.start([
    "agents.executor.implementation=reference",
    "agents.verifier.implementation=none",
  ]);
  const id = await daemon.submit({ task: "bubble-sort", fanout: 1, max_rounds: 1 });
  await daemon.finished(id);
  await page.goto(`${daemon.url}/studio/runs/${id}?t=1.0&at=0`);
  await expect(page.locator(".step-view .decision")).toHaveText("○ committed, not checked");
  await expect(page.locator(".step").first()).not.toContainText("✓");
  await expect(page.getByText("but its verifier, none, checks nothing")).toBeVisible();
  await expect(page.getByText("found every step clean")).toHaveCount(0);
  // The benchmark knows that the answer is right all the same.
  await expect(page.getByText("✓ Right: it is what the task's own algorithm gives.")).toBeVisible();
  await isAccessible(page);
});

test("fields say what cannot be seen in them", async ({ daemon, watched: page }) => {
  await daemon.start(["agents.executor.implementation=replay", 'agents.executor.lines=["a"]']);
  await page.goto(`${daemon.url}/studio/runs/new`);
  await page.getByLabel("A problem in words, with checks").check();
  await page.getByRole("textbox", { name: /^Statement/ }).fill("a\u202eb");
  await expect(page.getByRole("note")).toHaveText(
    "With a character that cannot be seen: a⟨U+202E⟩b",
  );
  await isAccessible(page);
  await page.getByRole("textbox", { name: /^Statement/ }).fill("ab");
  await expect(page.getByRole("note")).toHaveCount(0);
  // In JSON, such a character is its escape, in the form as on the page.
  const problem = {
    statement: "s",
    input: "a\u202eb",
    constraints: [{ name: "c", severity: "minor", check: "true" }],
  };
  const id = await daemon.submit({ problem, fanout: 1, max_rounds: 1 });
  await daemon.finished(id);
  await page.goto(`${daemon.url}/studio/runs/new?from=${id}`);
  await expect(page.getByLabel("Data (JSON)")).toHaveValue('"a\\u202eb"');
});

test("times have no sixtieth second", async ({ daemon, watched: page }) => {
  const id = await erring(daemon);
  const shown: [number, string][] = [
    [999, "999 ms"],
    [59_949, "59.9 s"],
    [59_950, "1 min"],
    [119_600, "2 min"],
    [3_599_500, "1 h"],
    [3_660_000, "1 h 1 min"],
  ];
  for (const [ms, text] of shown) {
    await page.route("**/v1/runs?*", async (route) => {
      const response = await route.fetch();
      const body = (await response.json()) as { runs: { wall_ms: number }[] };
      for (const run of body.runs) run.wall_ms = ms;
      await route.fulfill({ response, json: body });
    });
    await page.goto(`${daemon.url}/studio/runs`);
    await expect(
      page
        .getByRole("row", { name: new RegExp(ERRING_RUN.task) })
        .getByRole("cell", { name: text, exact: true }),
    ).toBeVisible();
    await page.unroute("**/v1/runs?*");
  }
  expect(id).not.toBe("");
});
