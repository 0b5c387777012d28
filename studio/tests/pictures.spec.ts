// Pages and figures against pictures of them, by pixels. `npx playwright test pictures --update-snapshots=all` makes the pictures
// again: look at what has changed before you commit it.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Page } from "@playwright/test";
import { ERRING, ERRING_RUN, expect, test } from "./daemon.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const PRIME = resolve(process.env["PRIME"] ?? "../target/release/prime-agents");

/** The font that the setup installs: pictures must not depend on others. */
const FONT = '* { font-family: "DejaVu Sans" !important; letter-spacing: normal !important }';

// The page's policy refuses the style that sets the font.
test.use({ bypassCSP: true });

/** A difference of a few pixels is that of a browser's version. */
const TOLERANCE = { maxDiffPixelRatio: 0.01, animations: "disabled" as const };

/** Leaves the page's requests without an answer, and replaces what differs from run to run: ids, times, sizes, digests. */
async function hold(page: Page): Promise<void> {
  await page.route("**/v1/**", () => {});
  await page.addStyleTag({ content: FONT });
  await page.evaluate(() => {
    const rules: [RegExp, string][] = [
      [/run_[0-9a-z]+…?/g, "run_0"],
      [/node_[0-9a-z]+…?|[0-9a-f]{8,}…?/g, "0"],
      [/\d{4}-\d\d-\d\d/g, "2026-01-02"],
      [/\d{1,2}:\d\d(:\d\d)?/g, "01:02:03"],
      [/[\d.,]+\s?(µs|ms|s|min|h|%|kB|MB|GB|KiB|MiB|GiB)(?![a-z])/g, "1 $1"],
      [/127\.0\.0\.1:\d+|pid \d+/g, "127.0.0.1:1"],
    ];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
      const before = node.nodeValue ?? "";
      const after = rules.reduce((text, [pattern, put]) => text.replace(pattern, put), before);
      if (after !== before) node.nodeValue = after;
    }
  });
}

test("pages look as their pictures", async ({ daemon, watched: page, expected }) => {
  expected.push("404 (Not Found)");
  await daemon.start(ERRING);
  // One trajectory: how far others are when a vote ends them differs from run to run.
  const id = await daemon.submit({ ...ERRING_RUN, fanout: 1 });
  await daemon.finished(id);
  const other = await daemon.submit({ task: "gcd-euclidean", fanout: 1 });
  await daemon.finished(other);

  const pages: Record<string, string> = {
    runs: "runs",
    new: "runs/new",
    run: `runs/${other}`,
    step: `runs/${id}?t=1.0&at=4`,
    compare: `compare?a=${id}&b=${other}`,
    agents: "agents",
    tasks: "tasks",
    task: "tasks/bubble-sort",
    reports: "reports",
    review: "review",
    overview: "overview",
    missing: "tasks/buble-sort",
  };
  for (const [name, path] of Object.entries(pages)) {
    await page.goto(`${daemon.url}/studio/${path}`);
    await expect(page.locator("h1")).toBeVisible();
    await expect(page.locator(".skeleton, .loading")).toHaveCount(0);
    await hold(page);
    await expect.soft(page).toHaveScreenshot(`${name}.png`, TOLERANCE);
    await page.unrouteAll();
  }
});

/** A figure of each kind, from published records. */
const FIGURES: [study: string, figures: string[]][] = [
  ["headline", ["systems", "categories", "boxes", "difficulty", "radar", "scatter-single-pass-prime", "pareto"]],
  ["scaling", ["scaling"]],
];

test("figures look as their pictures", async ({ page }) => {
  const folder = mkdtempSync(join(tmpdir(), "figures-"));
  for (const [study, figures] of FIGURES) {
    const out = join(folder, study);
    const records = join(ROOT, `docs/results/${study}.jsonl.gz`);
    const options = ["--study", join(ROOT, `studies/${study}.toml`), "--out", out];
    execFileSync(PRIME, ["study", "report", records, ...options], { cwd: ROOT, stdio: "ignore" });
    await page.goto(pathToFileURL(join(out, "report.html")).href);
    await page.addStyleTag({ content: FONT });
    for (const figure of figures) {
      const drawing = page.locator(`#figure-${figure} .drawing svg`).first();
      await expect.soft(drawing).toHaveScreenshot(`figure-${study}-${figure}.png`, TOLERANCE);
    }
  }
  rmSync(folder, { recursive: true });
});
