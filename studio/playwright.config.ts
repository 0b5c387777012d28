import { existsSync } from "node:fs";
import { defineConfig } from "@playwright/test";

/** The browser: Debian's, or Google's. */
const BROWSER = process.env["CHROMIUM"] ?? ["/usr/bin/chromium", "/usr/bin/google-chrome"].find((path) => existsSync(path)) ?? "chromium";
const FIREFOX = process.env["FIREFOX"] ?? ["/usr/bin/firefox-esr", "/usr/bin/firefox"].find((path) => existsSync(path)) ?? "firefox";

/** The browsers of the tests. Firefox, by WebDriver BiDi, walks the ways that tests marked with `@firefox` go. */
const PROJECTS = [
  { name: "chromium", use: { launchOptions: { executablePath: BROWSER, args: ["--no-sandbox"] } } },
  {
    name: "firefox",
    grep: /@firefox/,
    use: { browserName: "firefox" as const, channel: "moz-firefox", launchOptions: { executablePath: FIREFOX } },
  },
];

export default defineConfig({
  // The measurements are asked for by scripts/measure-studio.
  testDir: process.env["MEASURE"] === undefined ? "tests" : "measure",
  // What a test waits for comes by an event or not at all. These limits only end a test that hangs: they say nothing about
  // how fast the page is, and a busy machine stays far below them.
  timeout: 600_000,
  expect: { timeout: 60_000 },
  // Two cores, of which the daemon needs one.
  workers: 1,
  retries: 0,
  reporter: [["list"]],
  outputDir: "../target/studio/results",
  snapshotPathTemplate: "{testDir}/pictures/{arg}{ext}",
  projects: PROJECTS,
  use: {
    viewport: { width: 1360, height: 900 },
    // Its snapshots of the page take time and memory of the page.
    trace: process.env["MEASURE"] === undefined ? "retain-on-failure" : "off",
  },
});
