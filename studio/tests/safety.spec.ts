// Everything that comes from models, prompts, clients and problems is hostile; keys are secrets; other pages are strangers.

import { createServer } from "node:http";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { ERRING, ERRING_RUN, WITH_KEYS, erring, expect, isAccessible, test } from "./daemon.ts";
import type { Daemon } from "./daemon.ts";
import type { Page } from "@playwright/test";

const MARKUP = '<img src=x onerror=alert(1)><script>alert(2)</script>';
/** Markup, two marks that turn the direction of text, a colour and a bell for terminals, a JSON that some take for an element. */
const HOSTILE = `${MARKUP}\u202egnp.exe\u2066\u001b[31mred\u0007{"__html":"<b>"}`;
/** Names may have no control characters, and are short. */
const NAME = `${MARKUP}\u202egnp`;
const TEN_MB = 10 << 20;

/** The page shows the text as text: with signs for what cannot be seen, without an element of it, and not the whole of a long one. */
async function isShownAsText(page: Page, text: string): Promise<void> {
  expect(text).toContain(MARKUP);
  expect(text).toContain("⟨U+202E⟩gnp.exe⟨U+2066⟩␛[31mred␇");
  const whole = await page.locator("#studio").innerText();
  expect(whole).not.toMatch(/[\u202a-\u202e\u2066-\u2069\u001b\u0007]/);
  expect(whole.length).toBeLessThan(200_000);
  expect(await page.locator("#studio img, #studio script, #studio b").count()).toBe(0);
  await isAccessible(page);
}

/** A program that plays a role: it answers each request with this expression of Python; `hostile` is the text. */
function program(daemon: Daemon, name: string, answer: string): string {
  const lines = [
    "import json, sys",
    `hostile = json.loads(${JSON.stringify(JSON.stringify(HOSTILE))})`,
    "for line in sys.stdin:",
    "    request = json.loads(line)",
    '    if "prime" in request:',
    '        print(json.dumps({"prime": 1}), flush=True)',
    "        continue",
    `    print(json.dumps({"id": request["id"], **${answer}}), flush=True)`,
    "",
  ];
  return daemon.write(name, lines.join("\n"));
}

const SMALL = ["run.attempts_max=2", "run.fanout=1", "run.max_rounds=1"];

test("hostile answers, statements and names are shown as text", async ({ daemon, watched: page, expected }) => {
  const path = program(daemon, "executor.py", '{"action": hostile, "derivation": hostile + "x" * 300000}');
  await daemon.start([
    "agents.executor.implementation=process",
    `agents.executor.program.command=["python3", "${path}"]`,
    ...SMALL,
  ]);
  const problem = {
    statement: HOSTILE,
    input: { [HOSTILE]: HOSTILE },
    answer: { schema: { type: "string" } },
    constraints: [{ name: NAME, severity: "critical", check: "size(answer) < 3" }],
  };
  for (const request of [{ task: "bubble-sort" }, { problem }]) {
    const id = await daemon.submit(request);
    await daemon.finished(id);
    await page.goto(`${daemon.url}/studio/runs/${id}`);
    await isShownAsText(page, await page.locator(".verdict .line").innerText());
    await page.getByText("Derivation").click();
    await expect(page.locator("pre.text", { hasText: "…" }).first()).toContainText("characters)");
    await page.goto(`${daemon.url}/studio/runs/new?from=${id}`);
    await expect(page.getByRole("button", { name: "Start the run" })).toBeVisible();
    await isAccessible(page);
  }
  // What the client says of a task, a trajectory or a page ends up in the address, and from there on the page.
  expected.push("404 (Not Found)");
  for (const place of ["tasks", "runs"]) {
    await page.goto(`${daemon.url}/studio/${place}/${encodeURIComponent(HOSTILE)}`);
    await expect(page.getByRole("alert")).toBeVisible();
    await isShownAsText(page, `${await page.locator("h1").innerText()}`);
  }
});

test("lines of 10 MB are cut, and the page stays usable", async ({ daemon, watched: page }) => {
  const path = program(daemon, "executor.py", `{"action": hostile + "y" * ${TEN_MB}, "derivation": hostile + "x" * ${TEN_MB}}`);
  await daemon.start([
    "agents.executor.implementation=process",
    `agents.executor.program={command=["python3", "${path}"], line_bytes_max=67108864}`,
    ...SMALL,
  ]);
  const id = await daemon.submit({ task: "bubble-sort" });
  await daemon.finished(id);
  await page.goto(`${daemon.url}/studio/runs/${id}`);
  const line = page.locator(".verdict .line");
  await expect(line).toContainText(MARKUP);
  await isShownAsText(page, await line.innerText());
  expect((await line.innerText()).length).toBeLessThan(5_000);
  await expect(line).toContainText(/\(10,4\d\d,\d\d\d characters\)/);
  await page.locator("h1").click();
  await page.keyboard.press("j");
  await expect(page.locator(".step.selected .num")).toHaveText("1");
});

test("hostile errors of agents and verdicts are shown as text", async ({ daemon, watched: page }) => {
  const judge = program(daemon, "verifier.py", '{"score": 1.0, "violations": [hostile[:57]], "feedback": hostile}');
  await daemon.start([
    ...ERRING,
    "agents.verifier.implementation=process",
    `agents.verifier.program.command=["python3", "${judge}"]`,
    ...SMALL,
  ]);
  const id = await daemon.submit(ERRING_RUN);
  await daemon.finished(id);
  await page.goto(`${daemon.url}/studio/runs/${id}`);
  await expect(page.locator(".step-view")).toContainText(`breaks 1 constraint, ${MARKUP}⟨U+202E⟩gnp`);
  await page.getByText("Feedback to the executor").click();
  await isShownAsText(page, await page.locator("pre.text").first().innerText());
  await daemon.kill("SIGTERM");
  // An executor that refuses every turn, with a reason of its own.
  const refusing = program(daemon, "refusing.py", '{"error": hostile, "retry": False}');
  await daemon.start([
    "agents.executor.implementation=process",
    `agents.executor.program.command=["python3", "${refusing}"]`,
    ...SMALL,
  ]);
  const failed = await daemon.submit(ERRING_RUN);
  await daemon.finished(failed);
  await page.goto(`${daemon.url}/studio/runs/${failed}`);
  await expect(page.locator(".title .badge")).toHaveText(/failed/);
  await isShownAsText(page, await page.locator(".in-words").innerText());
  await page.goto(`${daemon.url}/studio/runs`);
  await expect(page.locator("tbody tr")).toHaveCount(2);
  await isAccessible(page);
});

/** A server in OpenAI's form that answers every prompt with the same text. */
async function model(answer: string): Promise<Server> {
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      response.setHeader("Content-Type", "application/json");
      const body = request.url?.endsWith("/models")
        ? { object: "list", data: [{ id: HOSTILE, object: "model" }] }
        : { id: "1", object: "chat.completion", choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: answer } }] };
      response.end(JSON.stringify(body));
    });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return server;
}

test("a hostile model's raw answer of 10 MB is shown as text", async ({ daemon, watched: page }) => {
  const server = await model(`${HOSTILE} ${"z".repeat(TEN_MB)}\ncmp 0 1`);
  const { port } = server.address() as AddressInfo;
  await daemon.start([
    "agents.executor.implementation=openai",
    "agents.executor.pool=stub",
    "agents.executor.grammar=false",
    `pools.stub.upstreams=[{url="http://127.0.0.1:${port}/v1", model="stub", concurrent_max=2}]`,
    "pools.stub.response_bytes_max=67108864",
    "run.budget.steps=3",
    ...SMALL,
  ]);
  const id = await daemon.submit({ task: "bubble-sort" });
  await daemon.finished(id);
  await page.goto(`${daemon.url}/studio/runs/${id}?t=1.0&at=0`);
  await page.getByText("Prompt and raw answer: ask an agent here").click();
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  const answer = page.getByRole("region", { name: "Request 1 of 1" }).locator("pre").last();
  await expect(answer).toContainText("characters)");
  const text = await answer.innerText();
  expect(text.length).toBeLessThan(250_000);
  expect(text).toContain("⟨U+202E⟩gnp.exe⟨U+2066⟩␛[31mred␇");
  expect(await page.locator("#studio img, #studio script, #studio b").count()).toBe(0);
  server.closeAllConnections();
  server.close();
});

test("the policy lets no script in, no markup from text, and no other host", async ({ daemon, watched: page, expected }) => {
  expected.push("Content Security Policy", "requires 'TrustedHTML'", "requires 'TrustedScript'");
  await daemon.start(ERRING);
  await page.goto(`${daemon.url}/studio/runs`);
  const found = await page.evaluate(async () => {
    // In a task of the page's own: what a debugger evaluates may evaluate more.
    await new Promise((task) => setTimeout(task, 0));
    const refused = (what: () => unknown) => {
      try {
        what();
        return "done";
      } catch (error) {
        return (error as Error).name;
      }
    };
    const reported = Promise.all(
      ["connect-src", "require-trusted-types-for"].map(
        (directive) =>
          new Promise((seen) =>
            document.addEventListener("securitypolicyviolation", (event) => event.effectiveDirective === directive && seen(directive)),
          ),
      ),
    );
    const script = document.createElement("script");
    const results = {
      eval: refused(() => (0, eval)("1")),
      markup: refused(() => (document.body.innerHTML = "<b>b</b>")),
      text: refused(() => (script.textContent = "window.inline = 1")),
      fetch: await fetch("http://127.0.0.1:9/").then(() => "done", (error: Error) => error.name),
    };
    return { results, inline: "inline" in window, reported: await reported };
  });
  expect(found.results.eval).toBe("EvalError");
  expect([found.results.markup, found.results.text, found.results.fetch]).toEqual(["TypeError", "TypeError", "TypeError"]);
  expect(found.inline).toBe(false);
  expect(found.reported).toEqual(["connect-src", "require-trusted-types-for"]);
});

test("no other page can frame the studio or read the API", async ({ daemon, watched: page, expected }) => {
  expected.push("frame-ancestors", "X-Frame-Options", "CORS policy", "403 (Forbidden)", "ERR_FAILED", "refused to connect", "ERR_BLOCKED");
  const id = await erring(daemon);
  const stranger = createServer((_, response) => {
    response.setHeader("Content-Type", "text/html");
    response.end(`<!doctype html><title>stranger</title><iframe id="studio" src="${daemon.url}/studio/runs/${id}"></iframe>`);
  });
  await new Promise<void>((listening) => stranger.listen(0, "127.0.0.1", listening));
  const { port } = stranger.address() as AddressInfo;
  await page.goto(`http://127.0.0.1:${port}/`);
  await expect.poll(() => page.frames().map((frame) => frame.url())).toContain("chrome-error://chromewebdata/");
  expect(await page.frameLocator("#studio").locator(".brand").count()).toBe(0);
  const read = (path: string, method: string) =>
    page.evaluate(
      ([url, how]) => fetch(url as string, { method: how, body: how === "POST" ? "{}" : null }).then((response) => String(response.status), () => "refused"),
      [`${daemon.url}${path}`, method],
    );
  expect(await read("/v1/runs", "GET")).toBe("refused");
  expect(await read(`/v1/runs/${id}/cancel`, "POST")).toBe("refused");
  stranger.closeAllConnections();
  stranger.close();
});

test("the files of the page have their types, and none of them may be framed or sniffed", async ({ daemon, request }) => {
  await daemon.start(ERRING);
  for (const [path, type] of [
    ["", "text/html; charset=utf-8"],
    ["runs/x", "text/html; charset=utf-8"],
    ["files/studio.js", "text/javascript; charset=utf-8"],
    ["files/studio.css", "text/css; charset=utf-8"],
    ["files/icon.svg", "image/svg+xml"],
  ] as const) {
    const headers = (await request.get(`${daemon.url}/studio/${path}`)).headers();
    expect(headers).toMatchObject({
      "content-type": type,
      "x-content-type-options": "nosniff",
      "x-frame-options": "DENY",
      "referrer-policy": "no-referrer",
      "cross-origin-opener-policy": "same-origin",
    });
    expect(headers["content-security-policy"]).toContain("default-src 'none'");
    expect(headers["content-security-policy"]).toContain("frame-ancestors 'none'");
  }
});

test("keys are asked for once and kept until the tab closes", async ({ daemon, watched: page, context, expected }) => {
  expected.push("401 (Unauthorized)");
  await daemon.start([...ERRING, WITH_KEYS]);
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
  expect(await page.evaluate(() => [Object.keys(localStorage).length, document.cookie, location.href.includes("abc")])).toEqual([0, "", false]);
  // Another tab has no key.
  const other = await context.newPage();
  await other.goto(`${daemon.url}/studio/tasks`);
  await expect(other.getByLabel("Key")).toBeVisible();
  await other.close();
  await page.getByRole("button", { name: "Forget key" }).click();
  await expect(page.getByLabel("Key")).toBeVisible();
});

test("a run is shown to the key that owns it, and to no other", async ({ daemon, watched: page, expected }) => {
  await daemon.start([...ERRING, WITH_KEYS]);
  const id = await daemon.submit(ERRING_RUN, "abc");
  const login = async (key: string) => {
    await page.getByLabel("Key").fill(key);
    await page.getByRole("button", { name: "Go on" }).click();
  };
  expected.push("401 (Unauthorized)", "404 (Not Found)");
  await page.goto(`${daemon.url}/studio/runs/${id}`);
  await login("abc");
  await expect(page.locator(".tree li")).toHaveCount(4);
  await page.getByRole("button", { name: "Forget key" }).click();
  await login("def");
  await expect(page.getByRole("alert")).toContainText(`there is no run ${id}`);
  await expect(page.locator(".tree")).toHaveCount(0);
  await page.getByRole("link", { name: "Runs", exact: true }).first().click();
  await expect(page.getByText("No runs yet")).toBeVisible();
});
