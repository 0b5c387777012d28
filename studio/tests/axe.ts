// axe-core in a page whose policy allows no foreign scripts: it is evaluated by the debugger, not loaded.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "@playwright/test";

const SOURCE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Results {
  violations: { id: string; impact: string; nodes: { html: string; failureSummary: string }[] }[];
}

export class AxeBuilder {
  constructor(private readonly page: Page) {}

  /** All findings, in words, whatever their weight. */
  async findings(): Promise<string[]> {
    await this.page.evaluate(SOURCE);
    const { violations } = await this.page.evaluate(
      () => (globalThis as unknown as { axe: { run: () => Promise<Results> } }).axe.run() as Promise<Results>,
    );
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)}: ${failureSummary}`));
  }
}
