// Watching: nothing jumps, nothing storms, and a list keeps its place.

import { ERRING, ERRING_RUN, SLOW, enter, erring, expect, growing, isAccessible, test } from "./daemon.ts";

/** What a browser says of requests to a daemon that was killed. */
const AWAY = [
  "ERR_CONNECTION_REFUSED",
  "ERR_INCOMPLETE_CHUNKED_ENCODING",
  "ERR_CONNECTION_RESET",
  "ERR_EMPTY_RESPONSE",
  "ERR_SOCKET_NOT_CONNECTED",
];

test("a list keeps its place and goes on to its last run", async ({ daemon, watched: page }) => {
  await daemon.start(["agents.executor.implementation=reference"]);
  const ids: string[] = [];
  for (let at = 0; at < 120; at += 1)
    ids.push(await daemon.submit({ task: "gcd-euclidean", fanout: 1, index: at }));
  await daemon.finished(ids[119] ?? "");
  await page.goto(`${daemon.url}/studio/runs`);
  const rows = page.locator("tbody tr");
  await expect(rows).toHaveCount(50);
  const more = page.getByRole("button", { name: "Show more" });
  await more.click();
  await expect(rows).toHaveCount(100);
  await more.click();
  await expect(rows).toHaveCount(120);
  await expect(more).toHaveCount(0);
  await expect(page.getByText("120 shown, which is all")).toBeVisible();
  // The oldest run is at the end. Back from it, the list is as long and stands where it stood.
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
  const top = await page.evaluate(() => scrollY);
  expect(top).toBeGreaterThan(1000);
  await page.locator(`a[href$="${ids[0]}"]`).click();
  await expect(page.getByRole("heading", { level: 1 })).toBeFocused();
  await page.goBack();
  await expect(rows).toHaveCount(120);
  await expect.poll(() => page.evaluate(() => scrollY)).toBe(top);
  // A new run comes on top, and nothing goes.
  await daemon.submit({ task: "gcd-euclidean", fanout: 1 });
  await expect(rows).toHaveCount(121);
});

test("a part of a task's name offers tasks, and a bad status in the address is said in words", async ({
  daemon,
  watched: page,
}) => {
  await erring(daemon);
  await page.goto(`${daemon.url}/studio/runs?task=sort`);
  const offer = page.locator(".offer");
  await expect(offer).toContainText("No task is named sort. Tasks with this in their name:");
  await offer.getByRole("button", { name: "bubble-sort" }).click();
  await expect(page).toHaveURL(/task=bubble-sort$/);
  await expect(page.locator("tbody tr")).toHaveCount(1);
  await enter(page.getByLabel("Task"), "bubble");
  await expect(page).toHaveURL(/task=bubble-sort$/);
  await page.goto(`${daemon.url}/studio/runs?status=finished`);
  await expect(page.getByRole("alert")).toContainText(
    "No run has the status finished, which is in the address.",
  );
  await expect(page.getByRole("alert")).not.toContainText("variant");
  await expect(page.locator("tbody tr")).toHaveCount(1);
  await isAccessible(page);
});

test("a daemon that is away is asked by one request in turn, and found again by itself", async ({
  daemon,
  watched: page,
  expected,
}) => {
  expected.push(...AWAY);
  const id = await erring(daemon);
  await page.clock.install();
  await page.goto(`${daemon.url}/studio/runs/${id}?t=1.0&at=0`);
  await expect(page.locator(".step-view .verdict")).toBeVisible();
  await daemon.kill();
  const asked: string[] = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  const step = (position: number) =>
    page
      .getByLabel("Go to step")
      .fill(String(position))
      .then(() => page.keyboard.press("Enter"));
  // A step that is not here yet: the page must ask, and cannot.
  await step(9);
  await expect.poll(() => asked.length).toBeGreaterThan(0);
  // Ten seconds of its clock, a tenth at a time; each request is answered by then, because nothing
  // listens.
  for (let tenth = 0; tenth < 100; tenth += 1) await page.clock.runFor(100);
  // Four of the pauses 0.5, 1, 2, 4, 8 s end within ten seconds.
  expect(asked.filter((path) => path === "/livez").length).toBeLessThanOrEqual(5);
  expect(asked.length).toBeLessThanOrEqual(20);
  // What was there is still there, and the page says that nothing new comes.
  await expect(page.getByText("The daemon does not answer since")).toBeVisible();
  await isAccessible(page);
  await expect(page.locator(".step-view .verdict")).toBeVisible();
  await daemon.start();
  await page.clock.runFor(20_000);
  await expect(page.locator(".step.selected .num")).toHaveText("9");
  await expect(page.getByText("The daemon does not answer")).toHaveCount(0);
});

test("every view keeps what it shows while the daemon is killed, and continues when it is back", async ({
  daemon,
  watched: page,
  expected,
}) => {
  expected.push(...AWAY);
  const id = await erring(daemon);
  const away = page.getByText("The daemon does not answer since");
  const views = ["runs", "runs/new", `runs/${id}`, `compare?a=${id}&b=${id}`, "agents", "engines", "tasks", "tasks/bubble-sort", "reports", "review", "overview"];
  for (const view of views) {
    await page.goto(`${daemon.url}/studio/${view}`);
    await expect(page.locator("h1")).toBeVisible();
    await expect(page.locator(".skeleton")).toHaveCount(0);
    const heading = await page.locator("h1").textContent();
    await daemon.kill();

    await expect(page.locator("h1")).toHaveText(heading ?? "");
    // Another view has to ask, and the way back finds what was there, or asks again.
    const other = view.startsWith("agents") ? "Tasks" : "Agents";
    await page.getByRole("navigation", { name: "Screens" }).getByRole("link", { name: other, exact: true }).click();
    await expect(away, view).toBeVisible();
    await page.goBack();
    await daemon.start();

    await expect(away, view).toHaveCount(0);
    await expect(page.locator("h1")).toHaveText(heading ?? "");
    await expect(page.locator(".skeleton")).toHaveCount(0);
    await isAccessible(page);
  }
});

test("a page of a run under way stays where it is, and follows where it is told to", async ({
  daemon,
  watched: page,
}) => {
  // The second trajectory's first mistake comes later: the page would have gone there.
  await daemon.start([...SLOW, "run.budget.wall_ms=3600000"]);
  const id = await daemon.submit({
    task: "tower-of-hanoi",
    input: { n: 20, from: 0, to: 2 },
    fanout: 3,
    seed: 2,
  });
  await page.goto(`${daemon.url}/studio/runs/${id}`);
  const title = page.getByRole("heading", { name: /^Step [\d,]+ of trajectory / });
  const first = (await title.textContent()) ?? "";
  await growing(page.locator(".tree li").nth(0), /of ([\d,]+) proposed/);
  await growing(page.locator(".tree li").nth(2), /of ([\d,]+) proposed/);
  await expect(title).toHaveText(first);
  await page.getByRole("button", { name: "Follow" }).click();
  await expect(page).toHaveURL(/follow=1/);
  await growing(title, /^Step ([\d,]+)/);
  await isAccessible(page);
  // A step that somebody goes to ends the following.
  await enter(page.getByLabel("Go to step"), "1");
  await expect(page).not.toHaveURL(/follow/);
  await expect(title).toHaveText(/^Step 1 of trajectory/);
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "No", exact: true }).click();
  await expect(page.locator(".title .badge")).toHaveText(/running/);
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Yes, cancel the run" }).click();
  await expect(page.locator(".title .badge")).toHaveText(/cancelled/);
});

test("steps are found by text and by kind, and 64 trajectories are a line each", async ({
  daemon,
  watched: page,
}) => {
  await daemon.start(ERRING);
  const id = await daemon.submit({ ...ERRING_RUN, fanout: 64 });
  await daemon.finished(id);
  const path = `${daemon.url}/v1/runs/${id}/steps?trajectory=1.0&limit=1000`;
  const read = async () =>
    (await (await fetch(path)).json()) as {
      steps: { action: string; decision: string; position: number }[];
      has_more: boolean;
    };
  // The first answers read only the beginning of a run.
  while ((await read()).has_more);
  const { steps } = await read();
  await page.goto(`${daemon.url}/studio/runs/${id}?t=1.0`);
  await expect(page.locator(".tree li.line")).toHaveCount(64);
  await isAccessible(page);
  await page.getByLabel("one line each").uncheck();
  await expect(page.locator(".tree li.line")).toHaveCount(0);
  await page.getByLabel("Text of a line").fill("SWAP");
  await page.getByRole("button", { name: "Find", exact: true }).click();
  const found = page.locator(".found li");
  const swaps = steps.filter(({ action }) => /swap/i.test(action));
  await expect(found.first()).toHaveAttribute("aria-setsize", String(swaps.length));
  await expect(page.locator(".found")).toContainText(
    `${swaps.length} steps in all ${steps.length}`,
  );
  await page.getByLabel("Kind of step").selectOption("rejected");
  const rejected = swaps.filter(({ decision }) => decision === "backtrack");
  await expect(found.first()).toHaveAttribute("aria-setsize", String(rejected.length));
  // Only visible rows exist: the last one does after a scroll.
  await page.getByRole("region", { name: "Found" }).evaluate((box) => {
    box.scrollTop = box.scrollHeight;
  });
  await expect(found.last()).toHaveAttribute("aria-posinset", String(rejected.length));
  await found.last().getByRole("button").click();
  const last = rejected.at(-1)?.position ?? NaN;
  await expect(page).toHaveURL(new RegExp(`at=${last}$`));
  await isAccessible(page);
  await page.getByRole("button", { name: "Show all steps" }).click();
  await expect(found).toHaveCount(0);
});

test("a long list asks for its newest runs only, and a watched run for what is new", async ({
  daemon,
  watched: page,
}) => {
  await daemon.start([...SLOW, "run.budget.wall_ms=3600000"]);
  for (let at = 0; at < 60; at += 1)
    await daemon.submit({
      task: "gcd-euclidean",
      fanout: 1,
      index: at,
      agents: { executor: "reference" },
    });
  const id = await daemon.submit({
    task: "tower-of-hanoi",
    input: { n: 20, from: 0, to: 2 },
    fanout: 4,
  });
  await page.clock.install();
  await page.goto(`${daemon.url}/studio/runs`);
  await expect(page.locator("tbody tr")).toHaveCount(50);
  const asked: string[] = [];
  let bytes = 0;
  page.on("response", (response) => {
    const { pathname, search } = new URL(response.url());
    if (pathname.endsWith("/progress")) return;
    asked.push(pathname + search);
    void response.body().then(
      (body) => (bytes += body.length),
      () => undefined,
    );
  });
  /** Ten seconds of the page's clock. */
  const pass = async () => {
    asked.length = 0;
    bytes = 0;
    for (let tenth = 0; tenth < 100; tenth += 1) await page.clock.runFor(100);
  };
  await pass();
  // Every 2 s the ten newest; the run under way is one of them.
  expect(asked.length).toBeGreaterThan(0);
  expect(asked.length).toBeLessThanOrEqual(6);
  expect(asked.every((path) => /^\/v1\/runs\?fields=[^&]+&limit=10$/.test(path))).toBe(true);
  expect(bytes).toBeLessThanOrEqual(6 * 30_000);
  for (const place of ["at=0", "follow=1"]) {
    await page.goto(`${daemon.url}/studio/runs/${id}?t=1.0&${place}`);
    await expect(page.locator(".step").first()).toBeVisible();
    await expect(page.locator(".step-view .verdict")).toBeVisible();
    await page.clock.runFor(10_000);
    await pass();
    // At most two requests and 20 kB a second.
    expect(asked.some((path) => path.endsWith("/tree"))).toBe(true);
    expect(asked.length).toBeLessThanOrEqual(20);
    expect(bytes).toBeLessThanOrEqual(200_000);
  }
  await fetch(`${daemon.url}/v1/runs/${id}/cancel`, { method: "POST" });
});
