import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { ERRING, expect, isAccessible, test } from "./daemon.ts";
import type { Daemon } from "./daemon.ts";
import type { Page } from "@playwright/test";

const PICTURES = "../docs/studio";

/** Pictures for the docs are made where this is asked for. */
async function picture(page: Page, name: string): Promise<void> {
  if ((process.env["PICTURES"] ?? "") === "") return;
  await page.screenshot({ path: `${PICTURES}/${name}.png`, animations: "disabled" });
}

/** Figures are printed, and decide nothing. */
function measured(what: string, ms: number): void {
  console.log(`measured: ${what}: ${ms.toFixed(0)} ms`);
}

const ERRING_RUN = { task: "bubble-sort", index: 3, fanout: 4, max_rounds: 1, seed: 5 };

async function erring(daemon: Daemon): Promise<string> {
  await daemon.start(ERRING);
  const id = await daemon.submit(ERRING_RUN);
  await daemon.finished(id);
  return id;
}

test("an empty list offers an example, which the shipped model solves", async ({ daemon, watched: page }) => {
  await daemon.start([]);
  await page.goto(`${daemon.url}/`);
  await expect(page).toHaveURL(/\/studio\/$/);
  await isAccessible(page);
  await page.getByRole("button", { name: /Run an example/ }).click();
  await expect(page.locator(".title .badge")).toHaveText(/verified/);
  await expect(page.getByText("found every committed step clean")).toBeVisible();
  await expect(page.getByRole("img", { name: /peg 0/ }).first()).toBeVisible();
  await isAccessible(page);
});

test("runs are listed live, and filters are in the address", async ({ daemon, watched: page }) => {
  const id = await erring(daemon);
  await page.goto(`${daemon.url}/studio/runs`);
  await expect(page.locator("tbody tr")).toHaveCount(1);
  const other = await daemon.submit({ task: "tower-of-hanoi" });
  await expect(page.locator("tbody tr")).toHaveCount(2);
  await daemon.finished(other);
  await page.getByLabel("Task").fill("bubble-sort");
  await page.getByLabel("Task").press("Enter");
  await expect(page).toHaveURL(/task=bubble-sort/);
  await expect(page.locator("tbody tr")).toHaveCount(1);
  await page.getByLabel("Status").selectOption("failed");
  await expect(page.getByText("No run fits")).toBeVisible();
  await page.goBack();
  await page.locator("tbody a").first().click();
  await expect(page).toHaveURL(new RegExp(`runs/${id}`));
});

test("the form for a new run shows a refusal at its field", async ({ daemon, watched: page, expected }) => {
  expected.push("400 (Bad Request)");
  await daemon.start(ERRING);
  await page.goto(`${daemon.url}/studio/runs/new`);
  await isAccessible(page);
  await page.getByLabel("Task", { exact: true }).fill("n-quens");
  await page.getByRole("button", { name: "Start the run" }).click();
  await expect(page.locator(".field.wrong")).toContainText("did you mean `n-queens`");
  await page.getByLabel("Task", { exact: true }).fill("n-queens");
  await page.getByLabel("Trajectories a round").fill("many");
  await page.getByRole("button", { name: "Start the run" }).click();
  await expect(page.locator(".field.wrong")).toContainText("Give a number");
  await page.getByLabel("Trajectories a round").fill("1000");
  await page.getByRole("button", { name: "Start the run" }).click();
  await expect(page.locator(".field.wrong")).toContainText("fanout");
  await page.getByLabel("An input of your own").check();
  await page.getByLabel("Task", { exact: true }).fill("tower-of-hanoi");
  await page.getByLabel(/Input \(JSON\)/).fill("{");
  await page.getByLabel("Trajectories a round").fill("2");
  await page.getByRole("button", { name: "Start the run" }).click();
  await expect(page.locator(".field.wrong")).toContainText("not JSON");
  await page.getByLabel(/Input \(JSON\)/).fill('{"n": 3, "from": 0, "to": 2}');
  await page.getByLabel("Executor").selectOption("reference");
  await picture(page, "new-run");
  await page.getByRole("button", { name: "Start the run" }).click();
  await expect(page).toHaveURL(/runs\/run_/);
  await expect(page.locator(".title .badge")).toHaveText(/verified/);
});

test("a run says why a step was rejected and what happened next", async ({ daemon, watched: page }) => {
  const id = await erring(daemon);
  await page.goto(`${daemon.url}/studio/runs/${id}`);
  // It opens at the first rejected step.
  await expect(page.locator(".step-view .verdict")).toContainText(/rejected|retry/i);
  await expect(page.locator(".explanation")).toContainText(/Rejected: .*Broke .*Then/s);
  await expect(page.locator(".broken tbody tr")).not.toHaveCount(0);
  await expect(page.locator(".tree li")).toHaveCount(4);
  await isAccessible(page);
  await picture(page, "run");
  const first = await page.locator(".step.selected .num").textContent();
  await page.locator("h1").click();
  await page.keyboard.press("x");
  await expect(page.locator(".step.selected .num")).not.toHaveText(first ?? "");
  await page.keyboard.press("Shift+X");
  await expect(page.locator(".step.selected .num")).toHaveText(first ?? "");
  await page.keyboard.press("j");
  await expect(page.locator(".step.selected .num")).toHaveText(String(Number(first) + 1));
  // The address is a link to the step.
  await page.reload();
  await expect(page.locator(".step.selected .num")).toHaveText(String(Number(first) + 1));
  const listed = await (await fetch(`${daemon.url}/v1/runs/${id}/steps?trajectory=1.0`)).json();
  const steps = listed.steps as { position: number; score: number; decision: string }[];
  const clean = steps.find(({ score, decision }) => score === 0 && decision === "proceed");
  await page.locator(".tree button", { hasText: "1.0" }).click();
  await page.getByRole("slider", { name: "Step" }).fill(String(clean?.position));
  await expect(page.locator(".explanation")).toContainText("Accepted: no constraint was violated.");
  await page.getByLabel("Go to step").fill("7");
  await page.getByLabel("Go to step").press("Enter");
  await expect(page).toHaveURL(/at=7/);
  await page.getByText("Turn single keys off").locator("xpath=ancestor::details").locator("summary").click();
  await page.getByLabel("Turn single keys off").check();
  await page.locator("h1").click();
  await page.keyboard.press("j");
  await expect(page).toHaveURL(/at=7/);
  await page.locator(".tree button", { hasText: "1.2" }).click();
  await expect(page).toHaveURL(/t=1.2/);
});

test("a long run can be scrolled, jumped in, and left in peace", async ({ daemon, watched: page }) => {
  await daemon.start(["agents.executor.implementation=reference"]);
  const id = await daemon.submit({ task: "tower-of-hanoi", input: { n: 17, from: 0, to: 2 }, fanout: 1 });
  await daemon.finished(id);
  await page.goto(`${daemon.url}/studio/runs/${id}`);
  const list = page.getByRole("listbox");
  await expect(list.locator(".step").first()).toBeVisible();
  const paint = () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN;
  measured("first contentful paint of a run of 131,071 steps", await page.evaluate(paint));
  for (const [position, shown] of [["65535", "65,535"], ["131070", "131,070"], ["3", "3"], ["131070", "131,070"]] as const) {
    const start = performance.now();
    await page.getByLabel("Go to step").fill(position);
    await page.getByLabel("Go to step").press("Enter");
    await expect(page.locator(".step.selected .num")).toHaveText(shown);
    await expect(page.locator(".step.selected .action")).toHaveText(/move/);
    measured(`a jump to step ${shown}, its row shown`, performance.now() - start);
    await expect(page.locator(".figures dd").filter({ hasText: new RegExp(`^${shown}$`) }).first()).toBeVisible();
    measured(`a jump to step ${shown}, its states shown`, performance.now() - start);
  }
  await expect(page.locator(".verdict .line")).toHaveText("move 1 0 2");
  await list.evaluate((element) => {
    element.scrollTop = element.scrollHeight / 2;
  });
  await expect(list.locator(".step .action").first()).toHaveText(/move/);
  expect(await list.locator(".step").count()).toBeLessThan(60);
});

test("what is watched goes on after a kill and a reload", async ({ daemon, watched: page, expected }) => {
  expected.push("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE",
    "ERR_SOCKET_NOT_CONNECTED");
  await daemon.start(["agents.executor.implementation=reference", "run.budget.wall_ms=3600000"]);
  const id = await daemon.submit({ task: "tower-of-hanoi", input: { n: 24, from: 0, to: 2 }, fanout: 1 });
  await page.goto(`${daemon.url}/studio/runs/${id}`);
  await expect(page.locator(".live")).toBeVisible();
  await daemon.kill();
  await expect(page.getByText(/Not connected since .* durable up to event/)).toBeVisible();
  await daemon.start();
  await expect(page.locator(".lost")).toHaveCount(0, { timeout: 20_000 });
  await expect(page.getByText("resumed 1×")).toBeVisible();
  await page.reload();
  await expect(page.locator(".step").first()).toBeVisible();
  const cancel = page.getByRole("button", { name: "Cancel" });
  if (await cancel.isVisible()) await cancel.click();
  await expect(page.locator(".title .badge")).toHaveText(/cancelled|verified/);
});

test("a fork is compared with its parent", async ({ daemon, watched: page }) => {
  const id = await erring(daemon);
  await page.goto(`${daemon.url}/studio/runs/${id}?t=1.0&at=10`);
  await expect(page.locator(".step.selected .num")).toHaveText("10");
  await page.getByLabel("Seed").fill("99");
  await page.getByRole("button", { name: "Fork after this step" }).click();
  await expect(page).toHaveURL(/compare\?a=run_.*&b=run_/);
  await expect(page.getByText(/the same for [\d,]+ steps, then different/).first()).toBeVisible();
  await expect(page.locator(".side-by-side .step-view")).toHaveCount(2);
  await isAccessible(page);
  await picture(page, "compare");
});

test("a fork with another agent is shown beside its parent", async ({ daemon, watched: page, expected }) => {
  const id = await erring(daemon);
  await page.goto(`${daemon.url}/studio/runs/${id}?t=1.0&at=10`);
  await expect(page.locator(".step.selected .num")).toHaveText("10");
  await page.getByText("Other agents").click();
  await page.getByRole("combobox", { name: "Executor", exact: true }).selectOption("reference");
  await isAccessible(page);
  await page.getByRole("button", { name: "Fork after this step" }).click();
  await expect(page).toHaveURL(/compare\?a=run_.*&b=run_/);
  const executors = page.getByRole("row", { name: /^Executor/ }).getByRole("cell");
  await expect(executors).toHaveText(["scripted", "reference"]);
  await expect(page.locator(".side-by-side .step-view")).toHaveCount(2);
  // What the daemon refuses is said at the form.
  expected.push("400 (Bad Request)");
  await page.goto(`${daemon.url}/studio/runs/${id}?t=1.0&at=10`);
  await page.getByLabel("Seed").fill("-1");
  await page.getByRole("button", { name: "Fork after this step" }).click();
  await expect(page.getByRole("alert")).toContainText("the query: ");
});

test("a step shows the prompt and the raw answer of its model", async ({ daemon, watched: page }) => {
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
});

test("an agent is tried on a step", async ({ daemon, watched: page, expected }) => {
  const id = await erring(daemon);
  await page.goto(`${daemon.url}/studio/runs/${id}`);
  await expect(page.locator(".step-view .verdict")).toContainText(/rejected|retry/i);
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
  const copied = async (name: string) => {
    await view.getByRole("button", { name, exact: true }).click();
    return page.evaluate(() => navigator.clipboard.readText());
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
  await page.getByLabel("Reason, for others").fill("looks wrong to me");
  await page.getByRole("button", { name: "It is wrong" }).click();
  await expect(page.locator(".review")).toContainText(/Rejected by local.*looks wrong to me/);
  await isAccessible(page);
});

test("keys are asked for once and kept until the tab closes", async ({ daemon, watched: page, expected }) => {
  expected.push("401 (Unauthorized)");
  // SHA-256 of "abc" (FIPS 180-2, appendix B.1).
  const sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  await daemon.start([...ERRING, `server.keys=[{name="a",sha256="${sha256}"}]`]);
  await page.goto(`${daemon.url}/studio/tasks`);
  await expect(page.getByRole("heading", { name: "This daemon asks for a key" })).toBeVisible();
  await isAccessible(page);
  await page.getByLabel("Key").fill("wrong");
  await page.getByRole("button", { name: "Go on" }).click();
  await expect(page.getByRole("alert")).toContainText("unknown");
  await page.getByLabel("Key").fill("abc");
  await page.getByRole("button", { name: "Go on" }).click();
  await expect(page.getByRole("link", { name: "Bubble Sort" })).toBeVisible();
  await page.reload();
  await expect(page.getByRole("link", { name: "Bubble Sort" })).toBeVisible();
  expect(await page.evaluate(() => Object.keys(localStorage).length)).toBe(0);
  await page.getByRole("button", { name: "Forget key" }).click();
  await expect(page.getByLabel("Key")).toBeVisible();
});

const REPORT = `<!DOCTYPE html><html lang="en"><title>r</title><style>h1 { color: rgb(1, 2, 3) }</style><h1>Headline</h1>
<a href="tables/t.csv">rows</a><script>document.querySelector("h1").append(" ", origin);
fetch("/v1/runs").then(() => document.querySelector("h1").append(" read"), () => document.querySelector("h1").append(" refused"))</script>`;

test("reports of studies are listed and opened, and cannot use the API", async ({ daemon, watched: page, context }) => {
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
  const sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  await daemon.start(["server.reports=reports", `server.keys=[{name="a",sha256="${sha256}"}]`]);
  await page.addInitScript(() => sessionStorage.setItem("prime-key", "abc"));
  await page.goto(`${daemon.url}/studio/reports`);
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save load.html" }).click();
  const download = await saved;
  expect(download.suggestedFilename()).toBe("load.html");
  expect(readFileSync(await download.path(), "utf8")).toBe(REPORT);
});

const HOSTILE = '<img src=x onerror=alert(1)><script>alert(2)</script>\u202egnp.exe\u2066\u001b[31mred\u0007{"__html":"<b>"}';

test("hostile text is shown as text", async ({ daemon, watched: page }) => {
  const program = [
    "import json, sys",
    `hostile = json.loads(${JSON.stringify(JSON.stringify(HOSTILE))})`,
    "for line in sys.stdin:",
    "    request = json.loads(line)",
    '    if "prime" in request:',
    '        answer = {"prime": 1}',
    "    else:",
    '        answer = {"id": request["id"], "action": hostile, "derivation": hostile + "x" * 300000}',
    "    print(json.dumps(answer), flush=True)",
    "",
  ].join("\n");
  const path = daemon.write("executor.py", program);
  await daemon.start([
    "agents.executor.implementation=process",
    `agents.executor.program.command=["python3", "${path}"]`,
    "run.attempts_max=3",
    "run.fanout=1",
    "run.max_rounds=1",
  ]);
  const problem = {
    statement: HOSTILE,
    input: { [HOSTILE]: HOSTILE },
    answer: { schema: { type: "string" } },
    constraints: [{ name: "short", severity: "critical", check: "size(answer) < 3" }],
  };
  for (const request of [{ task: "bubble-sort" }, { problem }]) {
    const id = await daemon.submit(request);
    await daemon.finished(id);
    await page.goto(`${daemon.url}/studio/runs/${id}`);
    await expect(page.locator(".verdict .line")).toContainText("<img src=x onerror=alert(1)><script>alert(2)</script>");
    const text = await page.locator("#studio").innerText();
    expect(text).not.toMatch(/[\u202a-\u202e\u2066-\u2069\u001b\u0007]/);
    expect(text).toContain("⟨U+202E⟩");
    expect(await page.locator("#studio img, #studio script, #studio b").count()).toBe(0);
    await isAccessible(page);
  }
  await page.goto(`${daemon.url}/studio/tasks/${encodeURIComponent(HOSTILE)}`);
  await expect(page.getByText("There is no task")).toBeVisible();
});

test("trees and graphs are drawn, and what a step changed in them is marked", async ({ daemon, watched: page }) => {
  await daemon.start(["agents.executor.implementation=reference"]);
  const drawn = async (request: object, at: number, selector: string) => {
    const id = await daemon.submit({ fanout: 1, ...request });
    await daemon.finished(id);
    await page.goto(`${daemon.url}/studio/runs/${id}?t=1.0&at=${at}`);
    const name = page.locator(`section[aria-label="${selector}"] svg.structure`);
    await expect(name).toBeVisible();
    await isAccessible(page);
    return (await name.getAttribute("aria-label")) ?? "";
  };
  // 5 is the root; 3 and 8 go to its left and right.
  const keys = { task: "bst-insertion", input: { keys: [5, 3, 8] } };
  // insert 0, insert 1, left 0, insert 2, right 0, done
  expect(await drawn(keys, 4, "State before")).toBe("Tree: 5 (here) over 3; 3");
  expect(await drawn(keys, 4, "State after")).toBe("Tree: 5 (changed) over 3, 8; 3; 8 (changed)");
  // Of two states, on "a" to the other and back.
  const automaton = { states: 2, alphabet: "ab", delta: [[1, 0], [0, 1]], start: 0, accept: [1], word: "ab" };
  expect(await drawn({ task: "dfa-simulation", input: automaton }, 0, "State before")).toBe(
    "Graph: 0 (here), 1; 0 to 1 by a; 0 to 0 by b; 1 to 0 by a; 1 to 1 by b",
  );
  for (const task of ["red-black-insert", "huffman-tree", "petri-net", "bfs-on-graph", "file-system", "union-find", "regex-nfa"]) {
    expect(await drawn({ task }, 9, "State before")).toMatch(/^(Tree|Graph): /);
  }
});

test("agents, engines and tasks are shown", async ({ daemon, watched: page }) => {
  await daemon.start([]);
  await page.goto(`${daemon.url}/studio/agents`);
  await expect(page.getByText("a model in a local llama.cpp engine").first()).toBeVisible();
  await isAccessible(page);
  await page.getByRole("link", { name: "Engines" }).click();
  await expect(page.getByRole("row", { name: /tiny.*up/ })).toBeVisible();
  await expect(page.getByText(/holds \d+ MiB of memory/)).toBeVisible();
  await isAccessible(page);
  await expect(page.getByRole("link", { name: "Nodes" })).toHaveCount(0);
  await page.goto(`${daemon.url}/studio/nodes`);
  await expect(page.getByText("This daemon is the only one")).toBeVisible();
  await expect(page.getByRole("row", { name: /answers here/ })).toBeVisible();
  await isAccessible(page);
  await page.getByRole("link", { name: "Tasks" }).click();
  await page.getByLabel("Find").fill("queens");
  await page.getByRole("link", { name: "N-Queens" }).first().click();
  await expect(page.getByRole("heading", { name: "Constraints" })).toBeVisible();
  await isAccessible(page);
});

test("the page works at 360 pixels and in the dark", async ({ daemon, watched: page }) => {
  const id = await erring(daemon);
  await page.emulateMedia({ colorScheme: "dark" });
  for (const width of [1360, 360]) {
    await page.setViewportSize({ width, height: 800 });
    for (const path of ["runs", "runs/new", `runs/${id}`, `compare?a=${id}&b=${id}`, "agents", "engines", "nodes", "tasks", "tasks/bubble-sort", "reports"]) {
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
