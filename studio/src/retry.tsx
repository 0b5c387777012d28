// A new try of a run without what was rejected in it. It starts a run, so the button asks first,
// says what is left out, and offers another budget.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, post } from "./api";
import type { ApiError } from "./api";
import { numberOf } from "./exact";
import { asError } from "./hooks";
import { Problem } from "./parts";
import { go, href } from "./router";
import { LIMITS, LIMIT_LABELS } from "./run_form";
import type { Limit } from "./run_form";
import type { Spec } from "./spec";
import { Text, count, some } from "./text";
import type { Run, Tree } from "./types";

/** Constraints that the question names. */
const NAMED_MAX = 6;

/** How many lines each constraint refused in all trajectories, most first. */
function refusals(tree: Tree): [string, number][] {
  const sums = new Map<string, number>();
  for (const node of tree.rounds.flatMap(({ trajectories }) => trajectories)) {
    for (const [name, lines] of Object.entries(node.violations)) {
      sums.set(name, (sums.get(name) ?? 0) + lines);
    }
  }
  return [...sums].sort(([, one], [, other]) => other - one);
}

/** The limits that may have ended a run. */
const SPENT: Record<string, Limit[]> = {
  steps_spent: ["steps"],
  tokens_spent: ["tokens", "completion_tokens"],
  cost_spent: ["cost"],
  wall_ms_spent: ["wall_ms"],
};

/** The limits of the new run: those of the old one, unless others are given. */
function BudgetFields(props: {
  run: Run;
  budget: Spec["plan"]["budget"];
  given: Partial<Record<Limit, string>>;
  onGiven: (given: Partial<Record<Limit, string>>) => void;
}): JSX.Element {
  const { run, budget, given, onGiven } = props;
  const old = (limit: Limit) => String(budget[limit] ?? 0);
  const spent = (SPENT[run.outcome ?? ""] ?? []).filter((limit) => old(limit) !== "0");
  const field = (limit: Limit) => (
    <label key={limit}>
      {LIMIT_LABELS[limit]}
      <input
        size={10}
        inputMode="decimal"
        value={given[limit] ?? ""}
        placeholder={old(limit) === "0" ? "no limit" : old(limit)}
        onInput={(event) => onGiven({ ...given, [limit]: event.currentTarget.value })}
      />
    </label>
  );
  return (
    <>
      {spent.length > 0 && (
        <span class="filters">
          <strong>It ended because its budget was spent.</strong>
          {spent.map(field)}
        </span>
      )}
      <details>
        <summary>
          {spent.length > 0 ? "Its other limits" : "Its budget stays, unless changed"}
        </summary>
        <span class="filters">{LIMITS.filter((limit) => !spent.includes(limit)).map(field)}</span>
      </details>
    </>
  );
}

/** What the dialog knows of the run. */
interface Asked {
  tree: Tree;
  spec: Spec;
}

export function Retry({ run }: { run: Run }): JSX.Element {
  const [asked, setAsked] = useState<Asked>();
  const [given, setGiven] = useState<Partial<Record<Limit, string>>>({});
  const [error, setError] = useState<ApiError>();
  const start = useRef<HTMLButtonElement>(null);
  useEffect(() => start.current?.focus(), [asked]);
  const path = `/v1/runs/${encodeURIComponent(run.id)}`;
  const attempt = async (work: () => Promise<void>) => {
    setError(undefined);
    try {
      await work();
    } catch (reason) {
      setError(asError(reason));
    }
  };
  const ask = () =>
    attempt(async () => {
      const [tree, spec] = await Promise.all([
        get<Tree>(`${path}/tree`),
        get<Spec>(`${path}/spec`),
      ]);
      setAsked({ tree, spec });
    });
  const retry = (exclude: boolean) =>
    attempt(async () => {
      const filled = LIMITS.filter((limit) => (given[limit] ?? "").trim() !== "");
      const budget = Object.fromEntries(
        filled.map((limit) => {
          const text = given[limit] ?? "";
          const value = numberOf(text);
          if (value === undefined) throw new Error(`${LIMIT_LABELS[limit]}: ${text} is no number.`);
          return [limit, value];
        }),
      );
      const force = run.status === "verified";
      const made = await post<Run>(`${path}/retry`, {
        exclude,
        ...(force && { force }),
        ...(filled.length > 0 && { budget }),
      });
      setAsked(undefined);
      go(href(["runs", made.id]));
    });
  const found = asked === undefined ? [] : refusals(asked.tree);
  const rejected = run.retries + run.backtracks;
  return (
    <>
      {asked === undefined && <button onClick={() => void ask()}>Retry</button>}
      {asked !== undefined && (
        <span class="asks" role="group" aria-label="Try the run again?">
          <span>
            A new run of the same request with another seed
            {rejected === 0 ? (
              ". Nothing was rejected, so it leaves nothing out."
            ) : (
              <>
                , without what was rejected at each state: {some(rejected, "line")}
                {found.slice(0, NAMED_MAX).map(([name, lines], at) => (
                  <span key={name}>
                    {at === 0 ? " (" : ", "}
                    <Text of={name} max={60} /> {count(lines)}
                  </span>
                ))}
                {found.length > NAMED_MAX && ` and ${some(found.length - NAMED_MAX, "constraint")}`}
                {found.length > 0 && ")"}.
              </>
            )}
            {run.status === "verified" && " This run is verified already."}
          </span>
          <BudgetFields
            run={run}
            budget={asked.spec.plan.budget}
            given={given}
            onGiven={setGiven}
          />
          <button class="primary" ref={start} onClick={() => void retry(true)}>
            Start it
          </button>
          {rejected > 0 && (
            <button onClick={() => void retry(false)}>Start it and leave nothing out</button>
          )}
          <button onClick={() => setAsked(undefined)}>Do not retry</button>
        </span>
      )}
      {error && <Problem error={error} />}
    </>
  );
}
