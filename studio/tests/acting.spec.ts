// What a person does to a run: fork, compare, ask an agent, copy, review.

import { execFileSync } from "node:child_process";
import { ERRING, ERRING_RUN, erring, expect, isAccessible, picture, test } from "./daemon.ts";

test("a fork is compared with its parent", { tag: "@firefox" }, async ({ daemon, watched: page }) => {
  const id = await erring(daemon);
  await page.goto(`${daemon.url}/studio/runs/${id}?t=1.0&at=10`);
  await expect(page.locator(".step.selected .num")).toHaveText("10");
  await page.getByText("Fork the run after this step").click();
  await page.getByLabel("Seed", { exact: true }).fill("99");
  await page.getByRole("button", { name: "Fork", exact: true }).click();
  await expect(page).toHaveURL(/compare\?a=run_.*&b=run_/);
  const fork = new URL(page.url()).searchParams.get("b") ?? "";
  await daemon.finished(fork);
  await expect(page.getByText(/the same for [\d,]+ steps, then different/).first()).toBeVisible();
  await expect(page.locator(".side-by-side .step-view")).toHaveCount(2);
  await isAccessible(page);
  await expect(page.getByRole("list", { name: "What the second run has" })).toContainText(
    `the beginning of ${id}, up to event`,
  );
  await picture(page, "compare");
  // Any step of both can be seen side by side.
  const compared = (await (await fetch(`${daemon.url}/v1/compare?a=${id}&b=${fork}`)).json()) as { trajectories: { same: number }[] };
  const same = compared.trajectories[0]?.same ?? NaN;
  await expect(page.locator(".aligned .selected .num")).toContainText(String(same));
  await page.getByRole("button", { name: String(same - 1), exact: true }).click();
  await expect(page).toHaveURL(new RegExp(`at=${same - 1}`));
  await expect(page.getByRole("heading", { name: `Row ${same - 1} of the second run` })).toBeVisible();
  const lines = page.locator(".side-by-side .verdict .line");
  // Each side keeps its last step until it has the next one.
  await expect.poll(async () => (await lines.first().textContent()) === (await lines.last().textContent())).toBe(true);
  await page.getByRole("button", { name: "To the first difference" }).click();
  await expect(page.locator(".aligned .selected .num")).toContainText(String(same));
  // Without two runs, the page asks for them.
  await page.goto(`${daemon.url}/studio/compare?a=${id}`);
  await page.getByLabel("Second run").fill(id);
  await page.getByRole("button", { name: "Compare", exact: true }).click();
  await expect(page.getByText(/the same in all \d+ steps/).first()).toBeVisible();
});

test("a fork with another agent is shown beside its parent", async ({ daemon, watched: page, expected }) => {
  const id = await erring(daemon);
  await page.goto(`${daemon.url}/studio/runs/${id}?t=1.0&at=10`);
  await expect(page.locator(".step.selected .num")).toHaveText("10");
  await page.getByText("Fork the run after this step").click();
  await page.getByRole("combobox", { name: "Executor", exact: true }).selectOption("reference");
  await isAccessible(page);
  await page.getByRole("button", { name: "Fork", exact: true }).click();
  await expect(page).toHaveURL(/compare\?a=run_.*&b=run_/);
  const executors = page.getByRole("row", { name: /^Executor/ }).getByRole("cell");
  await expect(executors).toHaveText(["scripted", "reference"]);
  await expect(page.locator(".side-by-side .step-view")).toHaveCount(2);
  // A line in place of the step's.
  await page.goto(`${daemon.url}/studio/runs/${id}?t=1.0&at=10`);
  const line = await page.locator(".verdict .line").innerText();
  await page.getByText("Fork the run after this step").click();
  await page.getByLabel("Line in place of this one").fill("no line of this task");
  await page.getByRole("button", { name: "Fork", exact: true }).click();
  await expect(page).toHaveURL(/compare\?a=run_.*&b=run_/);
  await expect(page.locator(".aligned .selected")).toContainText("no line of this task");
  await expect(page.locator(".aligned")).toContainText(line);
  // What the daemon refuses is said at the form.
  expected.push("400 (Bad Request)");
  await page.goto(`${daemon.url}/studio/runs/${id}?t=1.0&at=10`);
  await page.getByText("Fork the run after this step").click();
  await page.getByLabel("Seed", { exact: true }).fill("-1");
  await page.getByRole("button", { name: "Fork", exact: true }).click();
  await expect(page.getByRole("alert")).toContainText("in the query");
});

test("a step shows the prompt and the raw answer of its model", { tag: "@firefox" }, async ({ daemon, watched: page }) => {
  await daemon.start([]);
  const id = await daemon.submit({ task: "tower-of-hanoi", fanout: 1 });
  await daemon.finished(id);
  await page.goto(`${daemon.url}/studio/runs/${id}?t=1.0&at=2`);
  const line = await page.locator(".verdict .line").innerText();
  await page.getByText("Prompt and raw answer: ask an agent here").click();
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  const exchange = page.getByRole("region", { name: "Request 1 of 1" });
  await expect(exchange.getByRole("heading", { name: "Prompt", exact: true })).toBeVisible();
  await expect(exchange.locator("pre").last()).toContainText(line);
  await expect(page.locator(".tried")).toContainText("the recorded line");
  await expect(page.locator(".tried")).toContainText("V = 0");
  await isAccessible(page);

  // The same step with another prompt, and with the agent's own again.
  await page.getByRole("button", { name: "Edit this prompt and ask again" }).click();
  const prompt = page.getByLabel("Prompt of the first request");
  const own = await prompt.inputValue();
  await prompt.fill(`Another text.\n${own}`);
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  await expect(exchange.locator("pre").first()).toContainText("Another text.");
  await isAccessible(page);
  await page.getByRole("button", { name: "Back to the agent's own prompt" }).click();
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  await expect(exchange.locator("pre").first()).not.toContainText("Another text.");
  await expect(page.locator(".tried")).toContainText("the recorded line");
});

test("an agent is tried on a step", { tag: "@firefox" }, async ({ daemon, watched: page, expected }) => {
  const id = await erring(daemon);
  await page.goto(`${daemon.url}/studio/runs/${id}`);
  await expect(page.locator(".step-view .verdict")).toContainText("rejected");
  const line = await page.locator(".verdict .line").innerText();
  const events = (await daemon.record(id)).events;
  await page.getByText("Prompt and raw answer: ask an agent here").click();
  const tried = page.locator(".tried");
  const ask = page.getByRole("button", { name: "Ask", exact: true });
  await ask.click();
  await expect(tried).toContainText("No model was asked");
  await expect(tried).toContainText("the recorded line");
  await page.getByRole("combobox", { name: "Agent", exact: true }).selectOption("reference");
  await ask.click();
  await expect(tried).toContainText("not the recorded line");
  await expect(tried).toContainText("V = 0");
  await expect(tried).toContainText("proceed");
  await page.getByRole("combobox", { name: "Role", exact: true }).selectOption("verifier");
  await expect(page.getByLabel("Line to judge")).toHaveValue(line);
  await page.getByLabel("Line to judge").fill("no line of this task");
  await ask.click();
  await expect(tried).toContainText("backtrack");
  expected.push("400 (Bad Request)");
  await page.getByLabel("Line to judge").fill("");
  await ask.click();
  await expect(page.getByRole("alert")).toContainText("action");
  await isAccessible(page);
  // Nothing of it is recorded; another step begins anew.
  expect((await daemon.record(id)).events).toBe(events);
  await page.locator("h1").click();
  await page.keyboard.press("j");
  await expect(tried).toHaveCount(0);
});

test("a step is copied as curl, as Python and as test input", async ({ daemon, watched: page, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const id = await erring(daemon);
  await page.goto(`${daemon.url}/studio/runs/${id}`);
  const view = page.locator(".step-view");
  const line = await view.locator(".verdict .line").innerText();
  const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
  const copied = async (name: string) => {
    const before = await clipboard();
    await view.getByRole("button", { name, exact: true }).click();
    await expect.poll(clipboard).not.toBe(before);
    return clipboard();
  };
  const action = (answer: string) => (JSON.parse(answer) as { step: { action: string } }).step.action;
  expect(action(execFileSync("sh", ["-c", await copied("Copy as curl")], { encoding: "utf8" }))).toBe(line);
  expect(action(execFileSync("python3", ["-c", await copied("Copy as Python")], { encoding: "utf8" }))).toBe(line);
  const input = JSON.parse(await copied("Copy as test input")) as { task: string; action: string; state: unknown };
  expect([input.task, input.action]).toEqual(["bubble-sort", line]);
  expect(input.state).not.toBeNull();
});

test("a flagged step is answered", async ({ daemon, watched: page }) => {
  await daemon.start([
    ...ERRING,
    "agents.verifier.implementation=ensemble",
    'agents.verifier.ensemble.members=["rules", "none"]',
    "agents.verifier.ensemble.delta=0.0",
  ]);
  const id = await daemon.submit(ERRING_RUN);
  await daemon.finished(id);
  await page.goto(`${daemon.url}/studio/runs?needs_review=true`);
  await page.locator("tbody a").first().click();
  await page.goto(`${daemon.url}/studio/runs/${id}?t=1.0&at=0`);
  const flagged = (await (await fetch(`${daemon.url}/v1/runs/${id}/find?trajectory=1.0&what=flag`)).json()) as { position: number };
  await page.goto(`${daemon.url}/studio/runs/${id}?t=1.0&at=${flagged.position}`);
  await page.getByLabel("Note, for others").fill("looks wrong to me");
  await page.getByRole("button", { name: "It is wrong" }).click();
  await expect(page.locator(".review")).toContainText(/Rejected by local.*looks wrong to me/);
  await isAccessible(page);
});
