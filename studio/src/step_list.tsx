// The steps of a trajectory as a list of fixed rows, of which only the visible ones exist.

import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { get, query } from "./api";
import { decided } from "./decisions";
import { count, visible } from "./text";
import type { Step, StepList as Page } from "./types";
import { useWindowed } from "./windowed";

const PAGE = 200;
const PAGES_MAX = 64;
/** Pause after a page that could not be loaded. */
const FAILED_MS = 2000;

/** Steps by position, loaded page by page; the oldest pages are dropped. */
class Steps {
  private pages = new Map<number, Step[] | "loading">();

  constructor(
    readonly run: string,
    readonly trajectory: string,
    private readonly onChange: () => void,
  ) {}

  at(position: number): Step | undefined {
    const page = this.pages.get(Math.floor(position / PAGE));
    return page === undefined || page === "loading" ? undefined : page[position % PAGE];
  }

  /** Loads what is missing of a range; a page that has grown since is loaded again. */
  want(from: number, to: number, total: number): void {
    for (let number = Math.floor(from / PAGE); number * PAGE < Math.min(to, total); number += 1) {
      const page = this.pages.get(number);
      const expected = Math.min(PAGE, total - number * PAGE);
      if (page === "loading" || (page !== undefined && page.length >= expected)) continue;
      if (this.loading.has(number)) continue;
      this.pages.delete(number);
      this.pages.set(number, page ?? "loading");
      void this.load(number);
    }
  }

  private readonly loading = new Set<number>();

  /** Loads what a page lacks: of one that has grown, only what is new. */
  private async load(number: number): Promise<void> {
    if (this.loading.has(number)) return;
    this.loading.add(number);
    const path = `/v1/runs/${encodeURIComponent(this.run)}/steps`;
    const old = this.pages.get(number);
    const known = old === undefined || old === "loading" ? [] : old;
    const range = { from: number * PAGE + known.length, limit: PAGE - known.length };
    try {
      const { steps } = await get<Page>(query(path, { trajectory: this.trajectory, ...range }));
      this.pages.delete(number);
      this.pages.set(number, [...known, ...steps]);
      for (const oldest of this.pages.keys()) {
        if (this.pages.size <= PAGES_MAX) break;
        this.pages.delete(oldest);
      }
    } catch {
      // Asked again after a pause: each redraw wants what is missing. A daemon that is away is waited for by the request.
      if (this.pages.get(number) === "loading") this.pages.delete(number);
      await new Promise((resolve) => setTimeout(resolve, FAILED_MS));
    }
    this.loading.delete(number);
    this.onChange();
  }
}

export function StepList(props: {
  run: string;
  trajectory: string;
  total: number;
  at: number | null;
  /** True if the run's verifier looks at nothing. */
  unchecked: boolean;
  onPick: (position: number) => void;
}): JSX.Element {
  const { run, trajectory, total, at, unchecked, onPick } = props;
  const [, redraw] = useState(0);
  const steps = useMemo(
    () => new Steps(run, trajectory, () => redraw((old) => old + 1)),
    [run, trajectory],
  );
  const { box, onScroll, first, last, spacer, topOf, show } = useWindowed<HTMLDivElement>(total);
  useEffect(() => {
    if (at !== null) show(at);
  }, [at, trajectory, total > 0]);
  useEffect(() => steps.want(Math.max(0, first - 20), last + 20, total));
  const rows = [];
  for (let position = first; position < last; position += 1) {
    const step = steps.at(position);
    const decision = step === undefined ? undefined : decided(step, unchecked);
    rows.push(
      <div
        key={position}
        id={`step-${position}`}
        role="option"
        aria-selected={position === at}
        aria-posinset={position + 1}
        aria-setsize={total}
        class={`step ${step?.decision ?? "loading"} ${decision?.isClean === false ? "unchecked" : ""} ${position === at ? "selected" : ""}`}
        style={{ top: `${topOf(position)}px` }}
        onClick={() => onPick(position)}
      >
        <span class="num">{count(position)}</span>
        <span class="decision" title={decision?.word}>
          <span aria-hidden="true">{decision?.sign ?? "·"}</span>
          <span class="hidden">{decision?.word}</span>
        </span>
        <bdi class="action">{step === undefined ? "" : visible(step.action || "(no line left)", 200)}</bdi>
        <span class="end">
          {step?.needs_review === true && <span title="asks for review">⚑</span>}
          {step !== undefined && step.score > 0 ? step.score : ""}
        </span>
      </div>,
    );
  }
  return (
    <div
      ref={box}
      class="steps"
      role="listbox"
      tabIndex={0}
      aria-label={`Steps of trajectory ${trajectory}`}
      aria-activedescendant={at === null || at < first || at >= last ? undefined : `step-${at}`}
      onScroll={onScroll}
    >
      <div class="spacer" style={{ height: `${spacer}px` }}>
        {rows}
      </div>
    </div>
  );
}
