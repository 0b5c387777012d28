// A run: its trajectories, the steps of one, a step in full; long runs, and runs under way.

import { readFileSync } from "node:fs";
import { SLOW, enter, erring, expect, growing, isAccessible, picture, test } from "./daemon.ts";

interface Listed {
  position: number;
  seq: number;
  depth: number;
  action: string;
  score: number;
  decision: string;
}

async function listed(url: string, trajectory = "1.0"): Promise<Listed[]> {
  const response = await fetch(`${url}/steps?trajectory=${trajectory}&limit=1000`);
  return ((await response.json()) as { steps: Listed[] }).steps;
}

test("a run says why a step was rejected and what happened next", async ({ daemon, watched: page }) => {
  const id = await erring(daemon);
  await page.goto(`${daemon.url}/studio/runs/${id}`);
  // It opens at the first rejected step.
  await expect(page.locator(".step-view .verdict")).toContainText("rejected");
  const explanation = page.locator(".step-view");
  await expect(explanation).toContainText(/Why.*Rejected: .* score of .*What happened next.*The next proposal, .*, was /s);
  await expect(page.locator(".broken tbody tr")).not.toHaveCount(0);
  await expect(page.locator(".tree li")).toHaveCount(4);
  await expect(page.locator(".legend")).toContainText(/rejected: \d+/);
  await page.getByText("How to read this page").click();
  await expect(page.getByText("which constraints of the task it would break")).toBeVisible();
  await isAccessible(page);
  await page.getByText("How to read this page").click();
  await picture(page, "run");
  const selected = page.locator(".step.selected .num");
  const first = Number(await selected.textContent());
  const steps = await listed(`${daemon.url}/v1/runs/${id}`);
  expect(steps.findIndex(({ decision }) => decision !== "proceed")).toBe(first);
  // What happened next can be gone to.
  await explanation.getByRole("button", { name: /^Go to step/ }).click();
  await expect(selected).toHaveText(String(first + 1));
  await page.goBack();
  await expect(selected).toHaveText(String(first));
  await page.locator("h1").click();
  const rejected = steps.filter(({ decision }) => decision !== "proceed").map(({ position }) => position);
  await page.keyboard.press("x");
  await expect(selected).toHaveText(String(rejected[1]));
  await page.keyboard.press("Shift+X");
  await expect(selected).toHaveText(String(first));
  await page.keyboard.press("j");
  await expect(selected).toHaveText(String(first + 1));
  // The address is a link to the step.
  await page.reload();
  await expect(selected).toHaveText(String(first + 1));
  const clean = steps.find(({ score, decision }) => score === 0 && decision === "proceed");
  await page.locator(".tree button", { hasText: "1.0" }).click();
  await page.getByRole("slider", { name: "Step" }).fill(String(clean?.position));
  await expect(explanation).toContainText("Accepted: the verifier rules found nothing wrong with this line.");
  await enter(page.getByLabel("Go to step"), "7");
  await expect(page).toHaveURL(/at=7/);
  await page.getByText("Turn single keys off").locator("xpath=ancestor::details").locator("summary").click();
  await page.getByLabel("Turn single keys off").check();
  await page.locator("h1").click();
  await page.keyboard.press("j");
  await expect(page).toHaveURL(/at=7/);
  await page.locator(".tree button", { hasText: "1.2" }).click();
  await expect(page).toHaveURL(/t=1.2/);
});

test("a run is replayed to its end, and its stack leads to the steps below", async ({ daemon, watched: page }) => {
  const id = await erring(daemon);
  const steps = await listed(`${daemon.url}/v1/runs/${id}`);
  const last = steps.length - 1;
  await page.goto(`${daemon.url}/studio/runs/${id}?t=1.0&at=${last - 3}`);
  await page.getByRole("button", { name: "Play" }).click();
  await expect(page.locator(".step.selected .num")).toHaveText(String(last));
  await expect(page.getByRole("button", { name: "Play" })).toBeVisible();
  await expect(page.locator(".step-view")).toContainText("The trajectory ended: it had its answer.");
  await page.getByText(/^Stack: \d+ committed steps/).click();
  // The lowest frame is the first step that was committed.
  const frame = page.locator(".stack button").last();
  const committed = steps.filter(({ decision }) => decision === "proceed");
  const below = committed.filter(({ depth }) => depth >= committed.length - 1 - 64)[0];
  await expect(frame).toHaveText(below?.action ?? "");
  await frame.click();
  await expect(page.locator(".step.selected .num")).toHaveText(String(below?.position));
});

test("steps that were undone are told as such", async ({ daemon, watched: page }) => {
  await daemon.start([
    "agents.executor.implementation=scripted",
    "agents.executor.error_rate=0.5",
    "run.attempts_max=3",
    "run.max_rounds=1",
  ]);
  const id = await daemon.submit({ task: "bubble-sort", index: 3, fanout: 4, seed: 1 });
  await daemon.finished(id);
  const found = await (await fetch(`${daemon.url}/v1/runs/${id}/find?trajectory=1.0&what=pop`)).json();
  const { position } = found as { position: number };
  const steps = await listed(`${daemon.url}/v1/runs/${id}`);
  const pops = (steps[position]?.depth ?? NaN) - (steps[position + 1]?.depth ?? NaN);
  await page.goto(`${daemon.url}/studio/runs/${id}?t=1.0&at=0`);
  await expect(page.locator(".step.selected .num")).toHaveText("0");
  await page.locator("h1").click();
  await page.keyboard.press("p");
  await expect(page.locator(".step.selected .num")).toHaveText(String(position));
  await expect(page.locator(".step-view")).toContainText(
    `No line was left to try in this state, so the last ${pops === 1 ? "committed step was" : `${pops} committed steps were`} undone`,
  );
  await expect(page.getByText(`of which the last ${pops} were undone here`)).toBeVisible();
  await expect(page.locator(".legend")).toContainText("committed steps undone");
});

test("a long run can be scrolled, jumped in, and left in peace", async ({ daemon, watched: page }) => {
  await daemon.start(["agents.executor.implementation=reference"]);
  const id = await daemon.submit({ task: "tower-of-hanoi", input: { n: 17, from: 0, to: 2 }, fanout: 1 });
  await daemon.finished(id);
  await page.goto(`${daemon.url}/studio/runs/${id}`);
  const list = page.getByRole("listbox");
  await expect(list.locator(".step").first()).toBeVisible();
  for (const [position, shown] of [["65535", "65,535"], ["131070", "131,070"], ["3", "3"], ["131070", "131,070"]] as const) {
    await enter(page.getByLabel("Go to step"), position);
    await expect(page.locator(".step.selected .num")).toHaveText(shown);
    await expect(page.locator(".step.selected .action")).toHaveText(/move/);
    await expect(page.locator(".figures dd").filter({ hasText: new RegExp(`^${shown}$`) }).first()).toBeVisible();
  }
  await expect(page.locator(".verdict .line")).toHaveText("move 1 0 2");
  await list.evaluate((element) => {
    element.scrollTop = element.scrollHeight / 2;
  });
  await expect(list.locator(".step .action").first()).toHaveText(/move/);
  expect(await list.locator(".step").count()).toBeLessThan(60);
});

test("what is found in a long run is a list of which only the visible rows exist", async ({ daemon, watched: page }) => {
  await daemon.start(["agents.executor.implementation=scripted", "agents.executor.error_rate=0.2", "run.tau_soft=0.25"]);
  const id = await daemon.submit({ task: "tower-of-hanoi", input: { n: 15, from: 0, to: 2 }, fanout: 1, max_rounds: 1, seed: 3 });
  await daemon.finished(id);
  await page.goto(`${daemon.url}/studio/runs/${id}`);
  const found = page.locator(".found");
  const rows = found.getByRole("listitem");
  await page.getByLabel("Kind of step").selectOption("refused");
  for (const steps of ["200", "400", "600", "800", "1,000"]) {
    await expect(found.getByRole("status")).toContainText(`${steps} steps in the first`);
    if (steps !== "1,000") await page.getByRole("button", { name: "Find more" }).click();
  }
  expect(await rows.count()).toBeLessThan(30);
  await expect(rows.first()).toHaveAttribute("aria-setsize", "1000");
  // The last of them is the thousandth step that was not accepted.
  const all: Listed[] = [];
  while (all.length < 20_000) {
    const response = await fetch(`${daemon.url}/v1/runs/${id}/steps?trajectory=1.0&from=${all.length}&limit=1000`);
    const { steps } = (await response.json()) as { steps: Listed[] };
    if (steps.length === 0) break;
    all.push(...steps);
  }
  const last = all.filter(({ decision }) => decision !== "proceed")[999];
  await page.getByRole("region", { name: "Found" }).evaluate((box) => {
    box.scrollTop = box.scrollHeight;
  });
  await expect(rows.last()).toHaveAttribute("aria-posinset", "1000");
  expect(await rows.count()).toBeLessThan(30);
  await isAccessible(page);
  await rows.last().getByRole("button").click();
  await expect(page).toHaveURL(new RegExp(`at=${last?.position}`));
  await expect(rows.last().getByRole("button")).toHaveAttribute("aria-pressed", "true");
});

test("a long run is saved as a page of short tables, each closed at first", async ({ daemon, watched: page, context }) => {
  await daemon.start(["agents.executor.implementation=reference"]);
  // 4,095 moves, and the answer.
  const id = await daemon.submit({ task: "tower-of-hanoi", input: { n: 12, from: 0, to: 2 }, fanout: 1 });
  await daemon.finished(id);
  await page.goto(`${daemon.url}/studio/runs/${id}`);
  await page.locator("summary", { hasText: "Save" }).click();
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: /^Page \(HTML/ }).click();
  const alone = await context.newPage();
  await alone.setContent(readFileSync(await (await saved).path(), "utf8"));
  const parts = alone.locator("details details");
  const { total } = (await (await fetch(`${daemon.url}/v1/runs/${id}/steps?trajectory=1.0&limit=1`)).json()) as { total: number };
  const rest = total - 4000;
  const tables = await parts.evaluateAll((all) => all.map((part) => part.querySelectorAll("tbody tr").length));
  expect(tables).toEqual([1000, 1000, 1000, 1000, rest]);
  await expect(parts.last()).not.toHaveAttribute("open");
  await alone.getByText(/^Trajectory 1.0/).click();
  await alone.getByText("Steps 4,000 to").click();
  await expect(parts.last().getByRole("row").last()).toContainText(`${total - 1}`);
  await alone.close();
});

test("a step that the daemon has not read yet is waited for", async ({ daemon, watched: page }) => {
  await daemon.start(["agents.executor.implementation=reference"]);
  const id = await daemon.submit({ task: "tower-of-hanoi", input: { n: 10, from: 0, to: 2 }, fanout: 1 });
  await daemon.finished(id);
  let hasRead = false;
  await page.route("**/v1/runs/*/tree", async (route) => {
    const response = await route.fetch();
    const tree = (await response.json()) as { has_more: boolean; rounds: { trajectories: { steps: number }[] }[] };
    if (!hasRead) {
      tree.has_more = true;
      for (const node of tree.rounds.flatMap(({ trajectories }) => trajectories)) node.steps = 100;
    }
    // A changed answer must not pass for the one that its tag names.
    const { etag: _, ...headers } = response.headers();
    await route.fulfill({ response, headers, json: tree });
  });
  await page.goto(`${daemon.url}/studio/runs/${id}`);
  await expect(page.locator(".jump")).toContainText("of 100");
  await enter(page.getByLabel("Go to step"), "900");
  await expect(page).toHaveURL(/at=900/);
  hasRead = true;
  await expect(page.locator(".step.selected .num")).toHaveText("900");
});

test("trajectories grow while they are watched, through a kill and a reload", async ({ daemon, watched: page, expected }) => {
  expected.push("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE",
    "ERR_SOCKET_NOT_CONNECTED");
  await daemon.start([...SLOW, "run.budget.wall_ms=3600000"]);
  const id = await daemon.submit({ task: "tower-of-hanoi", input: { n: 24, from: 0, to: 2 }, fanout: 3 });
  await page.goto(`${daemon.url}/studio/runs/${id}?t=1.1`);
  await expect(page.locator(".live")).toBeVisible();
  await expect(page.locator(".tree li")).toHaveCount(3);
  const grows = () => growing(page.locator(".tree li").nth(1), /([\d,]+) committed/);
  await grows();
  await expect(page.locator(".tree")).toContainText("under way");
  await daemon.kill();
  await expect(page.getByText(/Not connected since .* durable up to event/)).toBeVisible();
  await expect(page.locator(".live")).toHaveCount(0);
  await daemon.start();
  await expect(page.locator(".lost")).toHaveCount(0);
  await expect(page.getByText("resumed 1×")).toBeVisible();
  await grows();
  await page.reload();
  await grows();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Yes, cancel the run" }).click();
  await expect(page.locator(".title .badge")).toHaveText(/cancelled/);
  await expect(page.locator(".tree")).not.toContainText("under way");
});

test("trees and graphs are drawn, and what a step changed in them is marked", async ({ daemon, watched: page }) => {
  await daemon.start(["agents.executor.implementation=reference"]);
  const drawn = async (request: object, at: number, selector: string) => {
    const id = await daemon.submit({ fanout: 1, ...request });
    await daemon.finished(id);
    await page.goto(`${daemon.url}/studio/runs/${id}?t=1.0&at=${at}`);
    const name = page.locator(`section[aria-label="${selector}"] svg.structure`);
    await expect(name).toBeVisible();
    return (await name.getAttribute("aria-label")) ?? "";
  };
  // 5 is the root; 3 and 8 go to its left and right.
  const keys = { task: "bst-insertion", input: { keys: [5, 3, 8] } };
  // insert 0, insert 1, left 0, insert 2, right 0, done
  expect(await drawn(keys, 4, "State before")).toBe("Tree: 5 (here) over 3; 3");
  await isAccessible(page);
  expect(await drawn(keys, 4, "State after")).toBe("Tree: 5 (changed) over 3, 8; 3; 8 (changed)");
  // Two states: on "a" to the other and back.
  const automaton = { states: 2, alphabet: "ab", delta: [[1, 0], [0, 1]], start: 0, accept: [1], word: "ab" };
  expect(await drawn({ task: "dfa-simulation", input: automaton }, 0, "State before")).toBe(
    "Graph: 0 (here), 1; 0 to 1 by a; 0 to 0 by b; 1 to 0 by a; 1 to 1 by b",
  );
  await isAccessible(page);
  for (const task of ["red-black-insert", "huffman-tree", "petri-net", "bfs-on-graph", "file-system", "union-find", "regex-nfa"]) {
    expect(await drawn({ task }, 9, "State before")).toMatch(/^(Tree|Graph): /);
  }
});

test("arrays, boards, tapes and pegs are drawn, and what a step changed in them is marked", async ({ daemon, watched: page }) => {
  await daemon.start(["agents.executor.implementation=reference"]);
  const after = page.getByRole("region", { name: "State after" });
  const open = async (request: object, at: number) => {
    const id = await daemon.submit({ fanout: 1, ...request });
    await daemon.finished(id);
    await page.goto(`${daemon.url}/studio/runs/${id}?t=1.0&at=${at}`);
    await expect(after).toBeVisible();
  };
  // cmp 0 1, swap 0 1
  await open({ task: "bubble-sort", input: { a: [3, 1, 2] } }, 1);
  await expect(after.getByRole("img", { name: "a: 1 (changed), 3 (changed), 2" })).toBeVisible();
  // Four queens on four times four squares; the first goes to some column of the first row.
  await open({ task: "n-queens", input: { n: 4, order: [1, 0, 2, 3] } }, 0);
  await expect(after.getByRole("table").locator("td")).toHaveCount(16);
  await expect(after.getByRole("table").locator("td.changed")).toHaveCount(1);
  await open({ task: "turing-machine" }, 1);
  await expect(after.locator(".tape .head")).toHaveCount(1);
  await open({ task: "tower-of-hanoi", input: { n: 2, from: 0, to: 2 } }, 0);
  await expect(after.getByRole("img", { name: "peg 0: 2; peg 1: 1; peg 2: empty" })).toBeVisible();
});
