// The queue of steps that wait for a person, and what is kept of a run.

import { readFileSync } from "node:fs";
import { ERRING, ERRING_RUN, WITH_KEYS, erring, expect, isAccessible, test, useKey } from "./daemon.ts";

/** Two verifiers that never agree about a mistake. */
const DISAGREEING = [
  ...ERRING,
  "agents.verifier.implementation=ensemble",
  'agents.verifier.ensemble.members=["rules", "none"]',
  "agents.verifier.ensemble.delta=0.0",
];

interface Flagged {
  seq: number;
  review: { verdict: string; note?: string } | null;
}

test("flagged steps are decided with keys alone", async ({ daemon, watched: page }) => {
  await daemon.start(DISAGREEING);
  const id = await daemon.submit({ ...ERRING_RUN, fanout: 1 });
  await daemon.finished(id);
  const flagged = async () => {
    const response = await fetch(`${daemon.url}/v1/runs/${id}/reviews?limit=1000`);
    return ((await response.json()) as { steps: Flagged[] }).steps;
  };
  const before = await flagged();
  const total = before.length;
  expect(total).toBeGreaterThan(4);
  await page.goto(`${daemon.url}/studio/runs/${id}`);
  await expect(page).toHaveTitle("verified: bubble-sort/easy/003 · prime-agents");
  // Its marks are below those of rejections, which would hide them.
  expect(await page.locator(".overview rect.flagged").first().getAttribute("y")).toBe("12");
  await page.getByRole("link", { name: `Review ${total} steps` }).press("Enter");
  const heading = page.locator(".review h2");
  await expect(heading).toHaveText(`1 of ${total}: is this step right?`);
  await expect(page.locator(".step-view .verdict")).toBeVisible();
  await isAccessible(page);
  // Right; then the next one wrong, with a note; then forward, back, and to the next undecided one.
  await page.keyboard.press("a");
  await expect(heading).toContainText("2 of ");
  await page.keyboard.press("m");
  await page.keyboard.type("7 is not next to 3");
  await page.keyboard.press("Escape");
  // What was typed waits for its step.
  await page.keyboard.press("n");
  await expect(page.getByLabel("Note, for others")).toHaveValue("");
  await page.keyboard.press("p");
  await expect(page.getByLabel("Note, for others")).toHaveValue("7 is not next to 3");
  await page.keyboard.press("r");
  await expect(heading).toContainText("3 of ");
  await page.keyboard.press("n");
  await expect(heading).toContainText("4 of ");
  await page.keyboard.press("p");
  await page.keyboard.press("p");
  await expect(heading).toContainText("2 of ");
  await expect(page.locator(".review")).toContainText("marked wrong by local");
  await page.keyboard.press("u");
  await expect(heading).toContainText("3 of ");
  const after = await flagged();
  expect(after[0]?.review).toMatchObject({ verdict: "accept" });
  expect(after[1]?.review).toMatchObject({ verdict: "reject", note: "7 is not next to 3" });
  expect(after.filter(({ review }) => review !== null)).toHaveLength(2);
  // Without a run, the queue has the open ones; undecided steps come first.
  await page.getByRole("link", { name: "Review", exact: true }).click();
  await expect(page.getByText(`${total - 2} steps undecided`)).toBeVisible();
  await expect(page.locator(".review")).toContainText("undecided");
  for (let left = total - 2; left > 0; left -= 1) {
    await page.keyboard.press("a");
    const now =
      left === 1 ? "nothing is undecided" : `${left - 1} step${left === 2 ? "" : "s"} undecided`;
    await expect(page.getByText(now)).toBeVisible();
  }
  await expect(page.locator(".review [role=status]")).toContainText("No other is undecided.");
  await page.goto(`${daemon.url}/studio/review`);
  await expect(page.getByText("No step waits for a review.")).toBeVisible();
});

test("keys that are typed faster than the daemon answers meet one step after the other", async ({
  daemon,
  watched: page,
  expected,
}) => {
  expected.push("503 (Service Unavailable)");
  await daemon.start(DISAGREEING);
  const id = await daemon.submit({ ...ERRING_RUN, fanout: 1 });
  await daemon.finished(id);
  await page.goto(`${daemon.url}/studio/review?run=${id}`);
  const heading = page.locator(".review h2");
  await expect(heading).toContainText("1 of ");
  const total = Number((await heading.textContent())?.match(/of (\d+)/)?.[1]);

  // The daemon takes no answer before all keys are typed, and refuses the second.
  let release = (): void => undefined;
  const typed = new Promise<void>((resolve) => (release = resolve));
  let asked = 0;
  await page.route("**/reviews", async (route) => {
    asked += 1;
    await typed;
    if (asked === 2) await route.fulfill({ status: 503, json: { error: { message: "is busy" } } });
    else await route.continue();
  });
  await page.keyboard.type("ar");
  // A key that is held down answers one step.
  await page.keyboard.down("r");
  await page.keyboard.down("r");
  await page.keyboard.up("r");
  await page.keyboard.press("a");
  await expect(heading).toContainText("5 of ");
  await page.keyboard.press("p");
  await expect(page.locator(".review")).toContainText("being marked…");
  release();

  await expect(heading).toContainText("2 of ");
  await expect(page.locator(".review")).toContainText("is busy");
  await expect(page.getByText(`${total - 3} steps undecided`)).toBeVisible();
  const response = await fetch(`${daemon.url}/v1/runs/${id}/reviews?limit=1000`);
  const { steps } = (await response.json()) as { steps: Flagged[] };
  const verdicts = steps.map(({ review }) => review?.verdict);
  expect(verdicts.slice(0, 5)).toEqual(["accept", undefined, "reject", "accept", undefined]);
});

test("steps are left to people by keys, and the queue shows whose they are", { tag: "@firefox" }, async ({
  daemon,
  watched: page,
}) => {
  await daemon.start(DISAGREEING);
  const id = await daemon.submit({ ...ERRING_RUN, fanout: 1 });
  await daemon.finished(id);
  const path = `${daemon.url}/v1/runs/${id}/reviews?limit=1000`;
  const assignees = async () => {
    const page = (await (await fetch(path)).json()) as { steps: { assignee: string | null }[] };
    return page.steps.map(({ assignee }) => assignee);
  };
  const total = (await assignees()).length;
  await page.goto(`${daemon.url}/studio/review?run=${id}`);
  const heading = page.locator(".review h2");
  const said = page.locator(".review [role=status]");
  await expect(heading).toHaveText(`1 of ${total}: is this step right?`);
  // What the step is judged by is beside it.
  const asked = page.getByRole("region", { name: "What was asked" });
  await expect(asked).toContainText("Input");
  await page.keyboard.press("t");
  await expect(said).toHaveText("Step 1 is for local.");
  await page.keyboard.press("n");
  await page.getByRole("textbox", { name: "Who is to review it" }).fill("<b>ada & é");
  await page.getByRole("button", { name: "Assign", exact: true }).click();
  await expect(page.locator(".assignee")).toContainText("for <b>ada");
  await isAccessible(page);
  expect(await assignees()).toEqual(["local", "<b>ada & é", ...Array(total - 2).fill(null)]);
  // Mine, then nobody's, then all again.
  await page.getByRole("heading", { name: "Review", exact: true }).click();
  await page.keyboard.press("w");
  await expect(page).toHaveURL(/whose=me/);
  await expect(heading).toHaveText("1 of 1: is this step right?");
  await page.keyboard.press("w");
  await expect(heading).toHaveText(`1 of ${total - 2}: is this step right?`);
  await page.getByRole("button", { name: "mine", exact: true }).click();
  await expect(heading).toHaveText("1 of 1: is this step right?");
  await page.keyboard.press("o");
  await expect(said).toHaveText("Step 1 is nobody's.");
  // Somebody else's step can be decided, and stays whose it is.
  await page.getByRole("button", { name: "all", exact: true }).click();
  await expect(heading).toHaveText(`1 of ${total}: is this step right?`);
  await page.keyboard.press("n");
  await page.keyboard.press("r");
  await expect(page.getByText(`${total - 1} steps undecided`)).toBeVisible();
  expect((await assignees())[1]).toBe("<b>ada & é");
});

test("rejected steps are saved as preference pairs", async ({ daemon, watched: page }) => {
  await daemon.start(DISAGREEING);
  const id = await daemon.submit({ ...ERRING_RUN, fanout: 1 });
  await daemon.finished(id);
  await page.goto(`${daemon.url}/studio/review?run=${id}`);
  await page.getByRole("button", { name: "Save as preference pairs" }).click();
  await expect(page.getByText("0 pairs", { exact: true })).toBeVisible();
  await page.keyboard.press("r");
  await expect(page.locator(".review [role=status]")).toHaveText("Step 1 is marked wrong.");
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save as preference pairs" }).click();
  const file = await saved;
  expect(file.suggestedFilename()).toBe(`${id}-pairs.jsonl`);
  const lines = readFileSync(await file.path(), "utf8").trim().split("\n");
  expect(lines).toHaveLength(1);
  const pair = JSON.parse(lines[0] as string) as Record<string, { role: string; content: string }[]>;
  expect([pair["prompt"]?.[0]?.role, pair["chosen"]?.[0]?.role]).toEqual(["user", "assistant"]);
  expect(pair["chosen"]?.[0]?.content).not.toBe(pair["rejected"]?.[0]?.content);
  await expect(page.getByText("1 pair", { exact: true })).toBeVisible();
});

test("a run that is over is exported in each form", async ({ daemon, watched: page }) => {
  const id = await erring(daemon);
  await page.goto(`${daemon.url}/studio/runs/${id}`);
  await page.locator("summary", { hasText: "Save" }).click();
  for (const [title, form] of [
    ["Bundle (for another daemon)", "bundle"],
    ["OpenTelemetry spans", "otel"],
    ["Row of a data set", "dataset"],
  ] as const) {
    const saved = page.waitForEvent("download");
    await page.getByRole("link", { name: title }).click();
    const file = await saved;
    expect(file.suggestedFilename()).toBe(`${id}.${form}.jsonl`);
    expect(readFileSync(await file.path(), "utf8")).toContain(form === "otel" ? "resourceSpans" : id);
    await page.locator("summary", { hasText: "Save" }).click();
  }
});

test("a run that spent its budget is tried again with more", async ({
  daemon,
  watched: page,
  expected,
}) => {
  expected.push("400 (Bad Request)");
  await daemon.start(["agents.executor.implementation=scripted"]);
  const id = await daemon.submit({ ...ERRING_RUN, budget: { steps: 3 } });
  await daemon.finished(id);
  await page.goto(`${daemon.url}/studio/runs/${id}`);
  await page.getByRole("button", { name: "Retry", exact: true }).click();
  const asks = page.getByRole("group", { name: "Try the run again?" });
  await expect(asks).toContainText("It ended because its budget was spent.");
  const proposals = asks.getByLabel("Maximum proposals");
  await expect(proposals).toHaveAttribute("placeholder", "3");
  await isAccessible(page);
  // Above what the daemon allows, and then within.
  await proposals.pressSequentially("9000000000000");
  await asks.getByRole("button", { name: "Start it", exact: true }).click();
  await expect(page.getByRole("alert")).toContainText("budget.steps");
  await proposals.fill("5000");
  await asks.getByRole("button", { name: "Start it", exact: true }).click();
  await expect(page).not.toHaveURL(new RegExp(id));
  const made = new URL(page.url()).pathname.split("/").at(-1) as string;
  await daemon.finished(made);
  expect(await daemon.record(made)).toMatchObject({ retry_of: id, status: "verified" });
});

test("a run that is over is tried again without what was rejected", { tag: "@firefox" }, async ({
  daemon,
  watched: page,
}) => {
  const id = await erring(daemon);
  await page.goto(`${daemon.url}/studio/runs/${id}`);
  // The button asks first, and says what is left out.
  await page.getByRole("button", { name: "Retry", exact: true }).click();
  const asks = page.getByRole("group", { name: "Try the run again?" });
  await expect(asks).toContainText(/without what was rejected at each state: \d+ lines \(/);
  await expect(asks).toContainText("This run is verified already.");
  await isAccessible(page);
  await asks.getByRole("button", { name: "Do not retry" }).click();
  await expect(asks).toHaveCount(0);
  await page.getByRole("button", { name: "Retry", exact: true }).click();
  await asks.getByRole("button", { name: "Start it", exact: true }).click();
  await expect(page).not.toHaveURL(new RegExp(id));
  const made = new URL(page.url()).pathname.split("/").at(-1) as string;
  await daemon.finished(made);
  expect(await daemon.record(made)).toMatchObject({ retry_of: id });
  // Its settings are cut, and shown on demand.
  const settings = page.getByRole("region", { name: "Settings", exact: true });
  const hidden = () =>
    settings
      .getByRole("region", { name: "With what it ran" })
      .evaluate((box) => box.scrollHeight - box.clientHeight);
  await settings.getByRole("button", { name: "Show all" }).click();
  await expect.poll(hidden).toBe(0);
  await settings.getByRole("button", { name: "Show less" }).click();
  await expect.poll(hidden).toBeGreaterThan(0);
  // The new run leads back to the old one.
  await page.getByRole("navigation", { name: "Where you are" }).getByRole("link", { name: id }).click();
  await expect(page).toHaveURL(new RegExp(id));
});

const MARKUP = "<img src=x onerror=alert(1)>\u202egnp";

test("a run is saved as a page that stands alone, and as its trace", async ({
  daemon,
  watched: page,
  context,
}) => {
  await daemon.start([
    "agents.executor.implementation=replay",
    `agents.executor.lines=${JSON.stringify([MARKUP])}`,
  ]);
  const problem = {
    statement: MARKUP,
    answer: { schema: { type: "string" } },
    constraints: [{ name: "c", severity: "minor", check: "true" }],
  };
  const id = await daemon.submit({ problem, fanout: 2, max_rounds: 1 });
  await daemon.finished(id);
  await page.goto(`${daemon.url}/studio/runs/${id}`);
  await page.locator("summary", { hasText: "Save" }).click();
  await isAccessible(page);
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: /^Page \(HTML/ }).click();
  const file = await saved;
  expect(file.suggestedFilename()).toBe(`${id}.html`);
  const html = readFileSync(await file.path(), "utf8");
  expect(html).not.toMatch(/<(script|img|link|a|iframe)\b|\u202e/);
  expect(html).toContain("&lt;img src");
  // It opens without a daemon, with each trajectory and its steps.
  const alone = await context.newPage();
  await alone.setContent(html);
  await expect(alone.locator("main details")).toHaveCount(3);
  await expect(alone.locator("h2")).toHaveText([
    "Question",
    "Answer",
    "Settings and counts",
    "Steps",
  ]);
  await alone.close();
  await page.locator("summary", { hasText: "Save" }).click();
  const trace = page.waitForEvent("download");
  await page.getByRole("link", { name: "Trace (JSON Lines)" }).click();
  const lines = readFileSync(await (await trace).path(), "utf8")
    .trim()
    .split("\n");
  expect(lines.length).toBe((await daemon.record(id)).events + 1);
});

test("with a key, the trace is saved too", async ({ daemon, watched: page }) => {
  await daemon.start([...ERRING, WITH_KEYS]);
  const id = await daemon.submit({ ...ERRING_RUN, fanout: 1 }, "abc");
  await useKey(page);
  await page.goto(`${daemon.url}/studio/runs/${id}`);
  await expect(page.locator(".title .badge")).toHaveText(/verified/);
  await page.locator("summary", { hasText: "Save" }).click();
  const trace = page.waitForEvent("download");
  await page.getByRole("button", { name: "Trace (JSON Lines)" }).click();
  expect((await trace).suggestedFilename()).toBe(`${id}.jsonl`);
});

test("runs of different instances are compared with a warning, and settings that differ are named", async ({
  daemon,
  watched: page,
}) => {
  const id = await erring(daemon);
  const other = await daemon.submit({ ...ERRING_RUN, index: 4, seed: 6 });
  const same = await daemon.submit(ERRING_RUN);
  for (const run of [other, same]) await daemon.finished(run);
  await page.goto(`${daemon.url}/studio/compare?a=${id}&b=${other}`);
  await expect(page.getByRole("alert")).toContainText(
    "These runs solved different instances of a task",
  );
  const causes = page.getByRole("list", { name: "What the second run has" }).getByRole("listitem");
  await expect(causes).toHaveText([
    "another instance: bubble-sort/easy/004 instead of bubble-sort/easy/003",
    "another seed: 6 instead of 5",
  ]);
  await page.getByText("All that was recorded otherwise").click();
  await expect(page.getByRole("row", { name: "sampling.seed 5 6" })).toBeVisible();
  await isAccessible(page);
  await page.goto(`${daemon.url}/studio/compare?a=${id}&b=${same}`);
  await expect(page.getByText("Their settings are the same.")).toBeVisible();
  await expect(page.getByRole("alert")).toHaveCount(0);
  // One agent that is another one is one difference, however many fields follow from it.
  const judged = await daemon.submit({ ...ERRING_RUN, agents: { verifier: "none" } });
  await daemon.finished(judged);
  await page.goto(`${daemon.url}/studio/compare?a=${id}&b=${judged}`);
  await expect(causes).toHaveText(["another verifier: none instead of rules"]);
});

test("steps that a run waits for are accepted, rejected and edited", async ({ daemon, watched: page }) => {
  await daemon.start(["agents.executor.implementation=uniform"]);
  const request = { task: "n-queens", input: { n: 4, order: [0, 1, 2, 3] }, fanout: 1, max_rounds: 1, approve: "every step" };
  const id = await daemon.submit(request);
  await page.goto(`${daemon.url}/studio/runs/${id}`);
  await expect(page).toHaveTitle(`waiting: {"n":4,"order":[0,1,2,3]} · prime-agents`);
  const first = page.getByRole("region", { name: "Approval 1" });
  await expect(first.getByRole("heading")).toContainText("place 0");
  await isAccessible(page);
  // A line is replaced only where another one was written.
  await expect(first.getByRole("button", { name: "Commit the edited line" })).toBeDisabled();
  const proposed = await first.getByLabel("Line").inputValue();
  const other = proposed === "place 0 1" ? "place 0 2" : "place 0 1";
  await first.getByLabel("Line").fill(other);
  await expect(first.getByRole("button", { name: "Accept" })).toBeDisabled();
  await first.getByRole("button", { name: "Commit the edited line" }).click();
  await expect(page.getByText(`Replaced by local: ${other}`)).toBeVisible();
  const second = page.getByRole("region", { name: "Approval 2" });
  await second.getByLabel("Reason").fill("the other corner");
  await second.getByRole("button", { name: "Reject" }).click();
  await expect(page.getByText("(the other corner)")).toBeVisible();
  const third = page.getByRole("region", { name: "Approval 3" });
  await third.getByRole("button", { name: "Accept" }).click();
  await expect(page.getByText("Accepted by local")).toBeVisible();
  // Somebody else may have been faster.
  const fourth = page.getByRole("region", { name: "Approval 4" });
  await expect(fourth).toBeVisible();
  const path = `${daemon.url}/v1/runs/${id}/approvals/4`;
  await fetch(path, { method: "POST", body: JSON.stringify({ verdict: "end", reason: "enough" }) });
  await expect(page).toHaveTitle(/^cancelled: .* · prime-agents$/);
  await expect(page.getByText("(enough)")).toBeVisible();
});
