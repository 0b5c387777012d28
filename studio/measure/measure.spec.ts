// Figures of the page on large journals, for docs/studio.md.

import { readFileSync, readdirSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { expect, test } from "../tests/daemon.ts";
import type { Daemon } from "../tests/daemon.ts";
import { line, spread } from "./figures.ts";
import type { Browser, Page } from "@playwright/test";

const RUNS = Number(process.env["RUNS"] ?? 10_000);
/** A tower of so many disks takes 2^DISKS - 1 steps. */
const DISKS = Number(process.env["DISKS"] ?? 20);
const JUMPS = 50;
const STOPS = 500;

/** First contentful paint, and when a first row with content was there, in ms since the navigation began. */
async function painted(page: Page, url: string, row: string): Promise<[number, number]> {
  await page.goto("about:blank");
  await page.goto(url, { waitUntil: "commit" });
  const shown = await page.evaluate(
    (selector) =>
      new Promise<number>((found) => {
        const look = () => {
          if ((document.querySelector(selector)?.textContent ?? "") === "") requestAnimationFrame(look);
          else requestAnimationFrame(() => found(performance.now()));
        };
        look();
      }),
    row,
  );
  const first = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN);
  return [first, shown];
}

async function paints(page: Page, what: string, url: string, row: string): Promise<void> {
  const figures: [number, number][] = [];
  for (let time = 0; time < 10; time++) figures.push(await painted(page, url, row));
  spread(`${what}: first contentful paint`, figures.map(([first]) => first));
  spread(`${what}: first row shown`, figures.map(([, shown]) => shown));
}

/** Lines of a file of `/proc`, in bytes. */
function kibibytes(path: string, name: string): number {
  return 1024 * Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(readFileSync(path, "utf8"))?.[1] ?? NaN);
}

/**
 * The heap of the page after a collection, and the memory of its process where the system tells it: resident, of which the
 * files that it maps (the browser's program, shared by all its processes) are a part, and what it alone has.
 */
async function memory(page: Page, browser: Browser, what: string): Promise<void> {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  await session.detach();
  const whole = await browser.newBrowserCDPSession();
  const { processInfo } = await whole.send("SystemInfo.getProcessInfo");
  await whole.detach();
  // The page's is the one that has computed most; others wait for a next page.
  const renderer = processInfo.filter(({ type }) => type === "renderer").toSorted((a, b) => b.cpuTime - a.cpuTime)[0];
  const status = `/proc/${renderer?.id}/status`;
  const mib = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
  const [resident, files] = [kibibytes(status, "VmRSS"), kibibytes(status, "RssFile") + kibibytes(status, "RssShmem")];
  const rollup = `/proc/${renderer?.id}/smaps_rollup`;
  const own = kibibytes(rollup, "Private_Dirty") + kibibytes(rollup, "Private_Clean");
  line(what, `JavaScript heap ${mib(usedSize)}, process ${mib(resident)} resident, of which ${mib(files)} mapped files; ${mib(own)} its own`);
}

async function fill(daemon: Daemon, count: number): Promise<void> {
  let left = count;
  const submit = async () => {
    while (left > 0) {
      left -= 1;
      for (;;) {
        const body = JSON.stringify({ task: "tower-of-hanoi", input: { n: 3, from: 0, to: 2 }, fanout: 1, seed: left });
        const response = await fetch(`${daemon.url}/v1/runs`, { method: "POST", body });
        const text = await response.text();
        if (response.status === 202) break;
        if (response.status !== 429) throw new Error(text);
      }
    }
  };
  await Promise.all(Array.from({ length: 16 }, submit));
}

test("the bytes of the page", () => {
  let [plain, packed] = [0, 0];
  for (const name of readdirSync("dist")) {
    const bytes = readFileSync(`dist/${name}`);
    plain += bytes.length;
    packed += gzipSync(bytes, { level: 9 }).length;
  }
  line("files of the page", `${plain} bytes, ${packed} with gzip -9`);
});

test("a blank page, for comparison", async ({ page, browser }) => {
  await page.goto("about:blank");
  await memory(page, browser, "a blank page");
});

test("many runs", async ({ daemon, watched: page, browser }) => {
  await daemon.start(["agents.executor.implementation=reference"]);
  await fill(daemon, RUNS);
  await paints(page, `list of ${RUNS} runs`, `${daemon.url}/studio/runs`, "tbody th a");
  await memory(page, browser, `list of ${RUNS} runs`);
});

test("a long run", async ({ daemon, watched: page, browser }) => {
  await daemon.start(["agents.executor.implementation=reference", "run.budget.wall_ms=3600000"]);
  const id = await daemon.submit({ task: "tower-of-hanoi", input: { n: DISKS, from: 0, to: 2 }, fanout: 1 });
  await daemon.finished(id);
  const steps = 2 ** DISKS - 1;
  const url = `${daemon.url}/studio/runs/${id}`;
  const [first, shown] = await painted(page, url, ".step.selected .action");
  line(`run of ${steps} steps, not indexed yet: first contentful paint`, `${first.toFixed(0)} ms`);
  line(`run of ${steps} steps, not indexed yet: first row shown`, `${shown.toFixed(0)} ms`);
  await expect(page.getByText("Reading the run")).toHaveCount(0);
  line(`run of ${steps} steps, not indexed yet: all of it counted`, `${(await page.evaluate(() => performance.now())).toFixed(0)} ms`);
  await paints(page, `run of ${steps} steps`, url, ".step.selected .action");
  const rows: number[] = [];
  const states: number[] = [];
  for (let jump = 1; jump <= JUMPS; jump++) {
    // Spread over the run, and never where the last one was.
    const position = (jump * 654_321_987) % steps;
    const [row, state] = await page.evaluate(async (to) => {
      const input = document.querySelector<HTMLInputElement>(".jump input");
      if (input === null) throw new Error("no field to jump with");
      const text = to.toLocaleString("en");
      const until = (is: () => boolean) =>
        new Promise<number>((found) => {
          const look = () => (is() ? found(performance.now()) : requestAnimationFrame(look));
          look();
        });
      const has = (selector: string, content: string) =>
        [...document.querySelectorAll(selector)].some((element) => element.textContent === content);
      const start = performance.now();
      input.value = String(to);
      input.dispatchEvent(new Event("change", { bubbles: true }));
      const row = await until(
        () => has(".step.selected .num", text) && (document.querySelector(".step.selected .action")?.textContent ?? "") !== "",
      );
      // The depth of a step without rejections before it is its position.
      const state = await until(() => has(".step-view .figures dd", text));
      return [row - start, state - start] as const;
    }, position);
    rows.push(row);
    states.push(state);
  }
  spread("jump to a step: its row shown", rows);
  spread("jump to a step: its states shown", states);
  await memory(page, browser, "before the scroll");
  const list = page.getByRole("listbox");
  for (let stop = 0; stop <= STOPS; stop++) {
    await list.evaluate((element, share) => (element.scrollTop = share * element.scrollHeight), stop / STOPS);
    await expect(list.locator(".step .action").first()).toHaveText(/move/);
  }
  await memory(page, browser, `after a scroll through all ${steps} steps with ${STOPS} stops`);
});
