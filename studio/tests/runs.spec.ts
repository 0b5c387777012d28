// The list of runs, and the form for a new one.

import { ERRING, ERRING_RUN, SLOW, enter, erring, expect, growing, isAccessible, picture, test } from "./daemon.ts";

test("an empty list offers an example, which the shipped model solves", async ({ daemon, watched: page }) => {
  await daemon.start([]);
  await page.goto(`${daemon.url}/`);
  await expect(page).toHaveURL(/\/studio\/$/);
  await isAccessible(page);
  await page.getByRole("button", { name: /Run an example/ }).click();
  await expect(page.locator(".title .badge")).toHaveText(/ verified/);
  await expect(page.getByText("found every step clean, and they let no wrong answer")).toBeVisible();
  await expect(page.getByRole("img", { name: /peg 0/ }).first()).toBeVisible();
  // A model takes its time, and the step says how much.
  await expect(page.locator(".figures div", { hasText: "Executor replied" }).locator("dd")).toHaveText(/\d+ ms|\d+\.\d s/);
  await expect(page.locator(".figures div", { hasText: "Verifier replied" }).locator("dd")).toHaveText("at once");
  await isAccessible(page);
});

test("runs are listed live, and filters are in the address", async ({ daemon, watched: page }) => {
  const id = await erring(daemon);
  await page.goto(`${daemon.url}/studio/runs`);
  await expect(page.locator("tbody tr")).toHaveCount(1);
  const other = await daemon.submit({ task: "tower-of-hanoi" });
  await expect(page.locator("tbody tr")).toHaveCount(2);
  await daemon.finished(other);
  await enter(page.getByLabel("Task"), "bubble-sort");
  await expect(page).toHaveURL(/task=bubble-sort/);
  await expect(page.locator("tbody tr")).toHaveCount(1);
  await page.getByLabel("Status").selectOption("failed");
  await expect(page.getByText("No run matches")).toBeVisible();
  await page.goBack();
  await page.locator("tbody a").first().click();
  await expect(page).toHaveURL(new RegExp(`runs/${id}`));
});

test("a search shows where it found its words, and an own input names its run", async ({ daemon, watched: page }) => {
  await daemon.start(["agents.executor.implementation=reference"]);
  const request = { task: "bubble-sort", input: { a: [3, 418, 2] }, fanout: 1 };
  await daemon.finished(await daemon.submit(request));
  await page.goto(`${daemon.url}/studio/runs`);
  const row = page.locator("tbody tr");
  await expect(row).toContainText('{"a":[3,418,2]}');
  await expect(row.locator("mark")).toHaveCount(0);
  await enter(page.getByRole("searchbox", { name: "Search" }), '"CMP 1 2" 418');
  await expect(row.locator(".excerpts li").last()).toHaveText("Line: cmp 1 2");
  await expect(row.locator("mark")).toHaveText(["418", "cmp 1 2"]);
  await isAccessible(page);
  // It is searched while somebody types, too; and the field goes with the address.
  await page.getByRole("searchbox", { name: "Search" }).fill("3,418");
  await expect(row.locator("mark")).toHaveText(["3,418"]);
  await expect(page.getByRole("searchbox", { name: "Search" })).toBeFocused();
  await page.getByRole("link", { name: "Runs", exact: true }).click();
  await expect(page.getByRole("searchbox", { name: "Search" })).toHaveValue("");
  await expect(row.locator("mark")).toHaveCount(0);
  await row.getByRole("link").first().click();
  await expect(page.locator("h1")).toHaveText('{"a":[3,418,2]}');
});

test("a search shows hostile text with signs", async ({ daemon, watched: page }) => {
  await daemon.start(["agents.executor.implementation=replay", 'agents.executor.lines=["done"]', "run.budget.steps=1"]);
  const statement = `<b>before</b> \u202e\u001b[31m needle ${"x".repeat(500)}`;
  const problem = { statement, answer: { pattern: "done" } };
  await daemon.finished(await daemon.submit({ problem, fanout: 1, max_rounds: 1 }));
  await page.goto(`${daemon.url}/studio/runs?q=needle`);
  const excerpt = page.locator("tbody .excerpts li");
  await expect(excerpt).toHaveText(/^Input: ….*<b>before<\/b> {3}\[31m needle x+…$/);
  await expect(excerpt.locator("mark")).toHaveText("needle");
  await expect(page.locator("tbody b")).toHaveCount(0);
});

test("a run under way grows in the list, and two of them are ticked to be compared", async ({ daemon, watched: page }) => {
  await daemon.start([...ERRING, ...SLOW]);
  const request = { task: "tower-of-hanoi", input: { n: 20, from: 0, to: 2 }, fanout: 2 };
  const [first, second] = [await daemon.submit(request), await daemon.submit({ ...request, seed: 7 })];
  await page.goto(`${daemon.url}/studio/runs`);
  const proposals = page.getByRole("row", { name: new RegExp(first) }).getByRole("cell").nth(3);
  await growing(proposals, /^([\d,]+)$/);
  await isAccessible(page);
  await page.getByLabel(`Compare ${first}`).check();
  await page.getByLabel(`Compare ${second}`).check();
  await page.getByRole("link", { name: "Compare the two" }).click();
  await expect(page).toHaveURL(new RegExp(`compare\\?a=${first}&b=${second}`));
  await expect(page.getByText(/the same for [\d,]+ steps, then different/).first()).toBeVisible();
  for (const id of [first, second]) {
    await page.goto(`${daemon.url}/studio/runs/${id}`);
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Yes, cancel the run" }).click();
    await expect(page.locator(".title .badge")).toHaveText(/cancelled/);
    await expect(page.getByText("what was committed is kept")).toBeVisible();
  }
});

test("the form for a new run shows a refusal at its field", async ({ daemon, watched: page, expected }) => {
  expected.push("400 (Bad Request)");
  await daemon.start(ERRING);
  await page.goto(`${daemon.url}/studio/runs/new`);
  await isAccessible(page);
  const wrong = page.locator(".field.wrong");
  const start = page.getByRole("button", { name: "Start the run" });
  await page.getByLabel("Task", { exact: true }).fill("n-quens");
  await start.click();
  await expect(wrong).toContainText("did you mean `n-queens`");
  await page.getByLabel("Task", { exact: true }).fill("n-queens");
  await page.getByLabel("Trajectories a round").fill("many");
  await start.click();
  await expect(wrong).toContainText("Give a number");
  await page.getByLabel("Trajectories a round").fill("1000");
  await start.click();
  await expect(wrong).toContainText("fanout");
  await page.getByLabel("Trajectories a round").fill("2");
  await page.getByLabel("An input of your own").check();
  await page.getByLabel("Task", { exact: true }).fill("tower-of-hanoi");
  // The fields of the task's input, with their meaning and an example.
  const disks = page.getByRole("textbox", { name: /^n · / });
  await expect(disks).toHaveValue(/^\d+$/);
  await disks.fill("{");
  await start.click();
  await expect(wrong).toContainText("not JSON");
  await disks.fill('"three"');
  await start.click();
  await expect(page.getByRole("alert")).toContainText("input");
  await disks.fill("3");
  await page.getByLabel("Executor").selectOption("reference");
  await isAccessible(page);
  await picture(page, "new-run");
  await start.click();
  await expect(page).toHaveURL(/runs\/run_/);
  await expect(page.locator(".title .badge")).toHaveText(/ verified/);
});

test("a problem of one's own is stated in a form, and a run is started again with changes", async ({ daemon, watched: page, expected }) => {
  expected.push("400 (Bad Request)");
  // The first number answers `input.sum`, the second does not.
  await daemon.start(["agents.executor.implementation=replay", 'agents.executor.lines=["[3, 5, 14]", "[3, 5, 13]"]', "presets.short.fanout=1"]);
  await page.goto(`${daemon.url}/studio/runs/new`);
  await page.getByLabel("A problem in words, with checks").check();
  await page.getByLabel("Preset").selectOption("short");
  const start = page.getByRole("button", { name: "Start the run" });
  await page.getByLabel("Name of constraint 1").fill("");
  await start.click();
  await expect(page.locator(".field.wrong")).toContainText("is not a name");
  await page.getByLabel("Name of constraint 1").fill("sum");
  await page.getByLabel("JSON Schema").fill('{"type": "array"');
  await start.click();
  await expect(page.locator(".field.wrong")).toContainText("not JSON");
  await page.getByLabel("JSON Schema").fill('{"type": "array"}');
  await page.getByRole("button", { name: "Add a constraint" }).click();
  await page.getByLabel("Name of constraint 2").fill("three");
  await page.getByRole("textbox", { name: "Constraint 2", exact: true }).fill("size(answer) == 3");
  await isAccessible(page);
  await start.click();
  await expect(page.locator(".title .badge")).toHaveText(/ verified/);
  await expect(page.locator(".votes code")).toHaveText("[3,5,13]");
  await expect(page.locator(".tree li")).toHaveCount(1);
  await expect(page.locator(".step-view")).toContainText("answer[0] + answer[1] + answer[2] == input.sum");
  await page.getByRole("link", { name: "Run again" }).click();
  await expect(page.getByLabel("Name of constraint 2")).toHaveValue("three");
  await expect(page.getByRole("textbox", { name: /^Statement/ })).toHaveValue(/three different numbers/);
  await page.getByRole("button", { name: "Remove constraint 1" }).click();
  await page.getByLabel("Preset").selectOption("short");
  await start.click();
  await expect(page.locator(".votes code")).toHaveText("[3,5,14]");
});

