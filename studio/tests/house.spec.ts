// The rest of the house: agents, engines, tasks, nodes, reports; every screen narrow and in the dark.

import { readFileSync } from "node:fs";
import { WITH_KEYS, erring, expect, isAccessible, picture, test, useKey } from "./daemon.ts";

test("agents, engines and nodes are shown", { tag: "@firefox" }, async ({ daemon, watched: page }) => {
  await daemon.start([]);
  await page.goto(`${daemon.url}/studio/agents`);
  await expect(page.getByText("a model in a local llama.cpp engine").first()).toBeVisible();
  const definition = page.getByRole("row", { name: /^strict a definition of rules/ });
  await definition.getByText("Options").click();
  await expect(definition).toContainText('kinds["format","invariant","transition","terminal"]');
  await isAccessible(page);
  await page.getByRole("link", { name: "Engines" }).click();
  // Its worker's memory and the daemon's.
  await expect(page.getByRole("row", { name: /tiny.*idle.* MiB/ })).toBeVisible();
  await expect(page.getByText(/daemon itself holds \d+ MiB of memory/)).toBeVisible();
  await isAccessible(page);
  await expect(page.getByRole("link", { name: "Nodes" })).toHaveCount(0);
  await page.goto(`${daemon.url}/studio/nodes`);
  await expect(page.getByText("This daemon is the only one")).toBeVisible();
  await expect(page.getByRole("row", { name: /this one/ })).toBeVisible();
  await isAccessible(page);
});

test("the nodes of a cluster are shown with their leases", async ({ daemon, watched: page }) => {
  await daemon.start(["agents.executor.implementation=reference"]);
  // What three daemons on one PostgreSQL answer is tested with them, by `make test-postgres`; here, what the page makes of it.
  const node = { version: "0.1.0", capacity: 64, age_ms: 90_000, lease_left_ms: 8_000 };
  const nodes = [
    { ...node, name: "a:1", this: true, held: 3 },
    { ...node, name: "b:2", this: false, held: 0, lease_left_ms: -2_500 },
  ];
  await page.route("**/v1/cluster", (route) =>
    route.fulfill({ json: { shared: true, nodes, open_runs: 5, waiting_runs: 2, oldest_waiting_ms: 61_000 } }),
  );
  await page.goto(`${daemon.url}/studio/`);
  await page.getByRole("link", { name: "Nodes" }).click();
  await expect(page.getByText("5 runs are open, 2 of them on no node yet, the oldest for 1 min 1 s.")).toBeVisible();
  await expect(page.getByRole("row", { name: "a:1 this one 0.1.0 3 64 1 min 30 s 8.0 s left" })).toBeVisible();
  await expect(page.getByRole("row", { name: /^b:2.*late by 2.5 s/ })).toBeVisible();
});

test("a task is shown with its worked example", { tag: "@firefox" }, async ({ daemon, watched: page, expected }) => {
  await daemon.start(["agents.executor.implementation=reference"]);
  await page.goto(`${daemon.url}/studio/tasks`);
  await page.getByLabel("Find").fill("bubble");
  await page.getByRole("link", { name: "Bubble Sort" }).click();
  await expect(page.getByText("Sort the list with bubble sort")).toBeVisible();
  // The example of docs and prompts begins with a comparison and a swap of the first two cells.
  const lines = page.getByRole("list", { name: "Steps of the example" }).getByRole("button");
  await expect(lines.nth(1)).toHaveText("swap 0 1");
  await lines.nth(1).click();
  const [before, after] = [page.getByRole("region", { name: "State before" }), page.getByRole("region", { name: "State after" })];
  const values = async (region: typeof before) => ((await region.getByRole("img").getAttribute("aria-label")) ?? "").match(/-?\d+/g) ?? [];
  const swapped = async () => {
    const [first, second, ...rest] = await values(before);
    return [second, first, ...rest];
  };
  await expect.poll(async () => String(await values(after)) === String(await swapped())).toBe(true);
  await expect(page.getByRole("row", { name: /^adjacent invariant 0.6/ })).toBeVisible();
  await isAccessible(page);
  await picture(page, "task");
  await page.getByRole("link", { name: "Run it" }).click();
  await expect(page.getByLabel("Task", { exact: true })).toHaveValue("bubble-sort");
  expected.push("404 (Not Found)");
  await page.goto(`${daemon.url}/studio/tasks/buble-sort`);
  await expect(page.getByRole("alert")).toContainText("did you mean `bubble-sort`");
});

const REPORT = `<!DOCTYPE html><html lang="en"><title>r</title><style>h1 { color: rgb(1, 2, 3) }</style><h1>Headline</h1>
<a href="tables/t.csv">rows</a><script>document.querySelector("h1").append(" ", origin);
fetch("/v1/runs").then(() => document.querySelector("h1").append(" read"), () => document.querySelector("h1").append(" refused"))</script>`;

test("reports of studies are listed and opened, and cannot use the API", { tag: "@firefox" }, async ({ daemon, watched: page, context }) => {
  await daemon.start([]);
  await page.goto(`${daemon.url}/studio/reports`);
  await expect(page.getByText("The daemon has no folder of reports")).toBeVisible();
  await daemon.kill("SIGTERM");
  daemon.write("reports/headline/report.html", REPORT);
  daemon.write("reports/headline/tables/t.csv", "a,b\n");
  daemon.write("report.html", REPORT);
  await daemon.start(["server.reports=reports"]);
  await page.goto(`${daemon.url}/studio/reports`);
  const link = page.getByRole("link", { name: "headline/report.html" });
  await expect(page.locator("tbody tr")).toHaveCount(1);
  await isAccessible(page);
  const opened = context.waitForEvent("page");
  await link.click();
  const report = await opened;
  await expect(report.getByRole("heading")).toHaveText("Headline null refused");
  await expect(report.getByRole("heading")).toHaveCSS("color", "rgb(1, 2, 3)");
  expect((await report.request.get(`${daemon.url}/v1/reports/headline/tables/t.csv`)).status()).toBe(200);
});

test("with a key, reports are saved", async ({ daemon, watched: page }) => {
  daemon.write("reports/load.html", REPORT);
  await daemon.start(["server.reports=reports", WITH_KEYS]);
  await useKey(page);
  await page.goto(`${daemon.url}/studio/reports`);
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save load.html" }).click();
  const download = await saved;
  expect(download.suggestedFilename()).toBe("load.html");
  expect(readFileSync(await download.path(), "utf8")).toBe(REPORT);
});

test("every screen works at 360 pixels and in the dark", { tag: "@firefox" }, async ({ daemon, watched: page }) => {
  const id = await erring(daemon);
  await page.emulateMedia({ colorScheme: "dark" });
  const screens = ["runs", "runs/new", `runs/${id}`, `compare?a=${id}&b=${id}`, "compare", "agents", "engines", "nodes", "tasks", "tasks/bubble-sort", "reports", "review", "overview"];
  for (const width of [1360, 360]) {
    await page.setViewportSize({ width, height: 800 });
    for (const path of screens) {
      await page.goto(`${daemon.url}/studio/${path}`);
      await expect(page.locator("h1")).toBeVisible();
      await expect(page.locator(".skeleton")).toHaveCount(0);
      await isAccessible(page);
    }
    await page.goto(`${daemon.url}/studio/runs/${id}`);
    await expect(page.locator(".step").first()).toBeAttached();
    if (width === 360) await page.getByRole("button", { name: "Step", exact: true }).click();
    await expect(page.locator(".step-view .verdict")).toBeVisible();
    await picture(page, width === 360 ? "narrow" : "dark");
  }
});

test("in forced colours, what is chosen has an outline, and drawings keep their shapes", async ({ daemon, watched: page }) => {
  const id = await erring(daemon);
  await page.emulateMedia({ forcedColors: "active" });
  await page.goto(`${daemon.url}/studio/runs/${id}?t=1.0&at=4`);
  await expect(page.locator(".step.selected")).toHaveCSS("outline-style", "solid");
  await expect(page.locator('.node[aria-pressed="true"]')).toHaveCSS("outline-style", "solid");
  await expect(page.locator(".overview")).toHaveCSS("forced-color-adjust", "none");
  await isAccessible(page);
});
