// A new try of a run without what was rejected in it. It starts a run, so the button asks first and
// says what is left out.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get, post } from "./api";
import type { ApiError } from "./api";
import { asError } from "./hooks";
import { Problem } from "./parts";
import { go, href } from "./router";
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

export function Retry({ run }: { run: Run }): JSX.Element {
  const [tree, setTree] = useState<Tree>();
  const [error, setError] = useState<ApiError>();
  const path = `/v1/runs/${encodeURIComponent(run.id)}`;
  const attempt = async (work: () => Promise<void>) => {
    setError(undefined);
    try {
      await work();
    } catch (reason) {
      setError(asError(reason));
    }
  };
  const ask = () => attempt(async () => setTree(await get<Tree>(`${path}/tree`)));
  const retry = (exclude: boolean) =>
    attempt(async () => {
      setTree(undefined);
      const force = run.status === "verified";
      const made = await post<Run>(`${path}/retry`, { exclude, ...(force && { force }) });
      go(href(["runs", made.id]));
    });
  const found = tree === undefined ? [] : refusals(tree);
  const rejected = run.retries + run.backtracks;
  return (
    <>
      {tree === undefined && <button onClick={() => void ask()}>Retry</button>}
      {tree !== undefined && (
        <span class="asks" role="group" aria-label="Try the run again?">
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
          {run.status !== "verified" && " Its budget stays: Run again can give it more."}
          <button
            class="primary"
            ref={(button) => button?.focus()}
            onClick={() => void retry(true)}
          >
            Start it
          </button>
          {rejected > 0 && (
            <button onClick={() => void retry(false)}>Start it and leave nothing out</button>
          )}
          <button onClick={() => setTree(undefined)}>Do not retry</button>
        </span>
      )}
      {error && <Problem error={error} />}
    </>
  );
}
