// A real daemon on a journal of its own, and a page that is watched: no error, no request to another host.

import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { AxeBuilder } from "./axe.ts";
import { test as base, expect } from "@playwright/test";
import type { Locator, Page } from "@playwright/test";

const PRIME = resolve(process.env["PRIME"] ?? "../target/release/prime-agents");

export class Daemon {
  private child: ChildProcess | undefined;
  private port = 0;
  readonly folder = mkdtempSync(join(tmpdir(), "prime-studio-"));
  private sets: string[] = [];

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The id of the daemon's process. */
  get pid(): number {
    return this.child?.pid ?? NaN;
  }

  /** Removes its journal, so that the next start begins with an empty one. */
  forget(): void {
    rmSync(join(this.folder, "data"), { recursive: true, force: true });
  }

  /** Starts it; the second time on the same port and journal. */
  async start(sets: string[] = this.sets): Promise<void> {
    this.sets = sets;
    const options = [`server.bind=127.0.0.1:${this.port}`, ...sets].flatMap((set) => ["--set", set]);
    const child = spawn(PRIME, ["serve", ...options], { cwd: this.folder, stdio: ["ignore", "pipe", "pipe"] });
    this.child = child;
    this.port = await new Promise((found, failed) => {
      let log = "";
      const read = (data: Buffer) => {
        log += data.toString();
        const ready = /ready on http:\/\/127\.0\.0\.1:(\d+)/.exec(log);
        if (ready !== null) found(Number(ready[1]));
      };
      child.stdout?.on("data", read);
      child.stderr?.on("data", read);
      child.on("exit", () => failed(new Error(`the daemon ended: ${log}`)));
    });
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const child = this.child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill(signal);
    await gone;
  }

  async end(): Promise<void> {
    await this.kill("SIGTERM");
    rmSync(this.folder, { recursive: true, force: true });
  }

  write(name: string, text: string): string {
    const path = join(this.folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    return path;
  }

  async submit(request: unknown, key = ""): Promise<string> {
    const headers = { Authorization: `Bearer ${key}` };
    const response = await fetch(`${this.url}/v1/runs`, { method: "POST", body: JSON.stringify(request), ...(key !== "" && { headers }) });
    const body = (await response.json()) as { id: string };
    if (response.status !== 202) throw new Error(JSON.stringify(body));
    return body.id;
  }

  async record(id: string): Promise<{ status: string; events: number; seed: number }> {
    return (await fetch(`${this.url}/v1/runs/${id}`)).json() as Promise<{ status: string; events: number; seed: number }>;
  }

  /** Waits for a run's end, by its stream. */
  async finished(id: string): Promise<void> {
    await (await fetch(`${this.url}/v1/runs/${id}/progress`)).text();
  }
}

/** An executor that makes mistakes. */
export const ERRING = [
  "agents.executor.implementation=scripted",
  "agents.executor.error_rate=0.35",
  "run.tau_soft=0.25",
];

/** One that takes its time, so that a run is under way while it is watched. */
export const SLOW = ["agents.executor.implementation=scripted", "agents.executor.error_rate=0.2", "agents.executor.latency_ms=20"];

export const ERRING_RUN = { task: "bubble-sort", index: 3, fanout: 4, max_rounds: 1, seed: 5 };

/** A run with rejected steps, at its end. */
export async function erring(daemon: Daemon): Promise<string> {
  await daemon.start(ERRING);
  const id = await daemon.submit(ERRING_RUN);
  await daemon.finished(id);
  return id;
}

/** The setting by which a daemon asks for a key: `abc` is Ada's, `def` is Ben's. The digests are those of `sha256sum`. */
export const WITH_KEYS =
  'server.keys=[{name="ada",sha256="ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},' +
  '{name="ben",sha256="cb8379ac2098aa165029e3938a51da0bcecfc008fd6795f401178647f96c5b34"}]';

/** Has the tab use the key `abc`, as if it had been entered before. */
export async function useKey(page: Page): Promise<void> {
  await page.addInitScript(() => {
    // A page without an origin has no storage.
    if (location.protocol === "http:") sessionStorage.setItem("prime-key", "abc");
  });
}

/** Types a text as a person does, whom a browser tells of the change, and presses Enter. */
export async function enter(field: Locator, text: string): Promise<void> {
  await field.fill("");
  await field.pressSequentially(text);
  await field.press("Enter");
}

/** Pictures for the docs are made where this is asked for. */
export async function picture(page: Page, name: string): Promise<void> {
  if ((process.env["PICTURES"] ?? "") === "") return;
  await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path: `../docs/studio/${name}.png`, animations: "disabled" });
}

interface Fixtures {
  daemon: Daemon;
  /** Console errors that a test expects, by a part of their text. */
  expected: string[];
  watched: Page;
}

export const test = base.extend<Fixtures>({
  daemon: async ({}, use) => {
    const daemon = new Daemon();
    await use(daemon);
    await daemon.end();
  },
  expected: async ({}, use) => use([]),
  watched: async ({ page, expected }, use) => {
    const wrong: string[] = [];
    page.on("pageerror", (error) => wrong.push(String(error)));
    page.on("dialog", (dialog) => (wrong.push(`dialog: ${dialog.message()}`), void dialog.dismiss()));
    page.on("console", (message) => {
      if (message.type() === "error") wrong.push(message.text());
    });
    page.on("request", (request) => {
      const { hostname } = new URL(request.url());
      if (hostname !== "127.0.0.1") wrong.push(`a request to ${request.url()}`);
    });
    if (process.env["FROM_DIST"] !== undefined) {
      // The page as it is in dist/, not as it is in the executable: no Rust build after a change of the page.
      await page.route("**/studio/files/*", (route) => route.fulfill({ path: join("dist", new URL(route.request().url()).pathname.slice(14)) }));
    }
    await use(page);
    expect(wrong.filter((text) => !expected.some((part) => text.includes(part)))).toEqual([]);
  },
});

/**
 * Waits until the number that `pattern` finds in the text has grown. The text is read as it is in the document: that of a row
 * which the browser has not laid out yet is empty on the screen.
 */
export async function growing(shown: Locator, pattern: RegExp): Promise<void> {
  const value = async () => Number(pattern.exec((await shown.textContent()) ?? "")?.[1]?.replaceAll(",", ""));
  let before = NaN;
  await expect
    .poll(async () => {
      const now = await value();
      if (Number.isNaN(before)) before = now;
      return now > before;
    })
    .toBe(true);
}

/** No finding of axe, and nothing wider than the window. */
export async function isAccessible(page: Page): Promise<void> {
  expect(await new AxeBuilder(page).findings()).toEqual([]);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(overflow).toBeLessThanOrEqual(0);
}

export { expect };
