import { defineConfig } from "@playwright/test";

export default defineConfig({
  testDir: "tests",
  timeout: 60_000,
  // Two cores, of which the daemon needs one.
  workers: 1,
  retries: 0,
  reporter: [["list"]],
  outputDir: "../target/studio/results",
  use: {
    viewport: { width: 1360, height: 900 },
    launchOptions: { executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox"] },
    trace: "retain-on-failure",
  },
});
