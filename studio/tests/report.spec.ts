// The page of a study's report in a browser: readable at any width, by keyboard and on paper, and its figures as files. The
// records are those of a published study.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { test as base } from "@playwright/test";
import { AxeBuilder } from "./axe.ts";
import { expect } from "./daemon.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const PRIME = resolve(process.env["PRIME"] ?? "../target/release/prime-agents");

/** The address of the page of a study's published records. */
type Made = (study: string) => string;

const test = base.extend<{ report: string }, { made: Made }>({
  made: [
    async ({}, use) => {
      const folder = mkdtempSync(join(tmpdir(), "report-"));
      await use((study) => {
        const out = join(folder, study);
        const records = join(ROOT, `docs/results/${study}.jsonl.gz`);
        const options = ["--study", join(ROOT, `studies/${study}.toml`), "--out", out];
        execFileSync(PRIME, ["study", "report", records, ...options], { cwd: ROOT, stdio: "ignore" });
        return pathToFileURL(join(out, "report.html")).href;
      });
      rmSync(folder, { recursive: true });
    },
    { scope: "worker" },
  ],
  report: async ({ made }, use) => use(made("headline")),
});

for (const colorScheme of ["light", "dark"] as const) {
  for (const width of [1440, 800, 375]) {
    test(`text of figures is as large as the page's at ${width} px, ${colorScheme}`, async ({ page, report }) => {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      await page.goto(report);
      const sizes = await page.locator("svg text").evaluateAll((texts) =>
        texts.map((text) => {
          const svg = (text as SVGTextElement).ownerSVGElement as SVGSVGElement;
          const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
          return scale * Number.parseFloat(getComputedStyle(text).fontSize);
        }),
      );
      expect(sizes.length).toBeGreaterThan(100);
      expect(Math.min(...sizes)).toBeGreaterThanOrEqual(12);

      // What does not fit scrolls within its figure or table, and not with the page.
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      expect(overflow).toBeLessThanOrEqual(0);
      expect(await new AxeBuilder(page).findings()).toEqual([]);
    });
  }
}

for (const study of ["headline", "adapters", "scaling", "sweeps", "strategies", "transfer", "cells", "verifier-worth"]) {
  test(`no two texts of a figure overlap, and none is cut by its edge: ${study}`, async ({ page, made }) => {
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.goto(made(study));
    const faults = await page.locator(".drawing svg").evaluateAll((drawings) =>
      drawings.flatMap((svg) => {
        const edge = svg.getBoundingClientRect();
        const upright = [...svg.querySelectorAll("text")].filter((text) => !text.hasAttribute("transform"));
        const boxes = upright.map((text) => {
          const { left, top, right, bottom } = text.getBoundingClientRect();
          // The box of a line has room above and below its letters.
          return { text: text.textContent ?? "", left, right, top: top + 3, bottom: bottom - 3 };
        });
        const isCut = (it: (typeof boxes)[number]) =>
          it.left < edge.left - 1 || it.right > edge.right + 1 || it.top < edge.top || it.bottom > edge.bottom;
        const cut = boxes.filter(isCut);
        const pairs = boxes.flatMap((a, place) =>
          boxes
            .slice(place + 1)
            .filter((b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
            .map((b) => `${a.text} over ${b.text}`),
        );
        return [...cut.map((it) => `cut: ${it.text}`), ...pairs].map((fault) => `${svg.getAttribute("aria-label")}: ${fault}`);
      }),
    );
    expect(faults).toEqual([]);
  });
}

test("values show at the pointer and by the arrow keys, and without a script as titles", async ({ page, report, browser }) => {
  await page.goto(report);
  const marks = page.locator("#figure-difficulty .mark");
  await marks.first().hover();
  const tip = page.locator(".tip");
  await expect(tip).toHaveText(/^easy, single pass; mean accuracy of the tasks, %: [\d.]+ \(95 %: /);

  await marks.first().focus();
  await page.keyboard.press("ArrowRight");
  await expect(tip).toHaveText(/^easy, PRIME; /);
  await page.keyboard.press("Escape");
  await expect(tip).toBeHidden();

  const plain = await browser.newContext({ javaScriptEnabled: false });
  const bare = await plain.newPage();
  await bare.goto(report);
  expect(await bare.locator("#figure-difficulty .mark title").first().textContent()).toMatch(/^easy, single pass; /);
  await plain.close();
});

test("a figure is saved as the file that the report has beside its page", async ({ page, report }) => {
  await page.goto(report);
  const save = page.getByRole("button", { name: "Save as SVG: Accuracy by difficulty" });
  const [download] = await Promise.all([page.waitForEvent("download"), save.click()]);
  expect(download.suggestedFilename()).toBe("difficulty.svg");
  const saved = readFileSync(await download.path(), "utf8");
  expect(saved).not.toContain("var(");
  const texts = (svg: string) => [...svg.matchAll(/<text[^>]*>([^<]*)</g)].map(([, text]) => text);
  const file = readFileSync(new URL("figures/difficulty.svg", report), "utf8");
  expect(texts(saved)).toEqual(texts(file));
  const errors = await page.evaluate(
    (text) => new DOMParser().parseFromString(text, "image/svg+xml").querySelectorAll("parsererror").length,
    saved,
  );
  expect(errors).toBe(0);
});

test("a figure is saved as a picture that prints at its size", async ({ page, report }) => {
  await page.emulateMedia({ colorScheme: "dark" });
  await page.goto(report);
  const save = page.getByRole("button", { name: "Save as PNG: Accuracy by difficulty" });
  const [download] = await Promise.all([page.waitForEvent("download"), save.click()]);
  expect(download.suggestedFilename()).toBe("difficulty.png");
  const saved = readFileSync(await download.path());
  const file = readFileSync(new URL("figures/difficulty.svg", report), "utf8");
  const [, width, height] = /width="(\d+)" height="(\d+)"/.exec(file) ?? [];
  // The head of a PNG: its width and height are the fifth and the sixth word. A pixel of the page is 1/96 inch.
  const dots = (pixels: string | undefined) => Math.round((300 / 96) * Number(pixels));
  expect([saved.readUInt32BE(16), saved.readUInt32BE(20)]).toEqual([dots(width), dots(height)]);
  // 300 dots an inch are 11,811 a metre, which is unit 1; the last word is the checksum that other encoders write.
  expect(saved.subarray(33, 54).toString("hex")).toBe("000000097048597300002e2300002e230178a53f76");
  // On white paper, with something drawn on it.
  const colours = await page.evaluate(async (text) => {
    const image = new Image();
    image.src = `data:image/png;base64,${text}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    const pen = canvas.getContext("2d") as CanvasRenderingContext2D;
    pen.drawImage(image, 0, 0);
    const words = new Uint32Array(pen.getImageData(0, 0, image.width, image.height).data.buffer);
    return { corner: words[0], all: new Set(words).size };
  }, saved.toString("base64"));
  expect(colours.corner).toBe(0xffffffff);
  expect(colours.all).toBeGreaterThan(10);
});

test("a figure alone is a PDF of one page of its size, with letters as letters", async ({ page, report, browserName }) => {
  test.skip(browserName !== "chromium", "Only Chromium writes PDF without a dialogue.");
  await page.goto(`${report}?figure=difficulty`);
  const file = readFileSync(new URL("figures/difficulty.svg", report), "utf8");
  const [, width, height] = /width="(\d+)" height="([\d.]+)"/.exec(file) ?? [];
  const pdf = (await page.pdf({ preferCSSPageSize: true, printBackground: true })).toString("latin1");
  const boxes = [...pdf.matchAll(/\/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]/g)].map(([, ...ends]) => ends.map(Number));
  expect(boxes).toHaveLength(1);
  // Three quarters of a point are a pixel; a page is cut to whole points at most.
  expect(Math.abs((boxes[0]?.[0] ?? 0) - 0.75 * Number(width))).toBeLessThan(1);
  expect(Math.abs((boxes[0]?.[1] ?? 0) - 0.75 * Math.ceil(Number(height)))).toBeLessThan(1);
  // Drawn, not a picture: fonts and no image.
  expect(pdf).toContain("/FontFile2");
  expect(pdf).not.toMatch(/\/Subtype\s*\/Image/);
});

test("a figure is printed alone by its button, and the page is whole again after it", async ({ page, report }) => {
  await page.goto(report);
  await page.emulateMedia({ media: "print" });
  const title = await page.title();
  await page.evaluate(() => {
    window.print = () => {
      const shown = [...document.body.children].filter((it) => getComputedStyle(it).display !== "none");
      document.documentElement.dataset["printed"] = [document.title, ...shown.map((it) => it.className)].join();
    };
  });
  const button = page.locator("#figure-difficulty button", { hasText: "PDF" });
  await button.evaluate((it) => (it as HTMLButtonElement).click());
  await expect(page.locator("html")).toHaveAttribute("data-printed", "difficulty,only");
  await page.evaluate(() => window.dispatchEvent(new Event("afterprint")));
  await expect(page.locator(".only")).toHaveCount(0);
  expect(await page.title()).toBe(title);
  await expect(page.locator("h1")).toBeVisible();
});

test("on paper a figure stays on one page, in light colours", async ({ page, report }) => {
  await page.emulateMedia({ colorScheme: "dark", media: "print" });
  await page.goto(report);
  const rules = await page.locator("figure:not(.panels), .panels .drawing").evaluateAll((all) =>
    all.map((it) => getComputedStyle(it).breakInside),
  );
  expect(new Set(rules)).toEqual(new Set(["avoid"]));
  const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  expect(paper).toBe("rgb(255, 255, 255)");
});
