// The steps of a run that wait for a person, and what was decided about others.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get, post, query } from "./api";
import type { ApiError } from "./api";
import { asError, useGrowing } from "./hooks";
import { isOver } from "./live";
import { Panel, Problem } from "./parts";
import { Hidden, Long, Text, time } from "./text";
import type { Approval, Approvals as List, Run } from "./types";

/** The newest approvals of a run that are shown. */
const SHOWN = 200;

const WHAT = { accept: "Accepted", reject: "Rejected", edit: "Replaced", end: "Run ended" };

function Decide({ path, of, onDone }: { path: string; of: Approval; onDone: (to: Approval) => void }): JSX.Element {
  const [reason, setReason] = useState("");
  const [line, setLine] = useState(of.action);
  const [refused, setRefused] = useState<ApiError>();
  const decide = async (verdict: "accept" | "reject" | "edit") => {
    try {
      const more = verdict === "edit" ? { line } : {};
      onDone(await post<Approval>(`${path}/${of.number}`, { verdict, reason, ...more }));
    } catch (error) {
      setRefused(asError(error));
    }
  };
  const isEdited = line !== of.action && line.trim() !== "";
  return (
    <>
      <label>
        Line
        <input value={line} onInput={(event) => setLine(event.currentTarget.value)} />
        <Hidden of={line} />
      </label>
      <label>
        Reason
        <input value={reason} maxLength={1000} onInput={(event) => setReason(event.currentTarget.value)} />
        <Hidden of={reason} />
      </label>
      <div class="actions">
        <button disabled={isEdited} onClick={() => void decide("accept")}>
          Accept
        </button>
        <button disabled={isEdited} onClick={() => void decide("reject")}>
          Reject
        </button>
        <button disabled={!isEdited} onClick={() => void decide("edit")}>
          Commit the edited line
        </button>
      </div>
      {refused && <Problem error={refused} />}
    </>
  );
}

/** The approvals of a run, those that wait first. Runs that never waited are not asked for any. */
export function Approvals({ run }: { run: Run }): JSX.Element | null {
  const asked = run.approvals?.asked ?? 0;
  return asked === 0 ? null : <Listed run={run} asked={asked} />;
}

function Listed({ run, asked }: { run: Run; asked: number }): JSX.Element {
  const path = `/v1/runs/${encodeURIComponent(run.id)}/approvals`;
  const load = async (signal: AbortSignal) => {
    const address = query(path, { after: Math.max(0, asked - SHOWN), limit: SHOWN });
    const { approvals } = await get<List>(address, signal);
    // An approval is listed a moment after its event.
    return { approvals, has_more: asked > (approvals[approvals.length - 1]?.number ?? 0) };
  };
  const { data, error } = useGrowing(path, run.events, !isOver(run), load, 300);
  const [decided, setDecided] = useState(new Map<number, Approval>());
  const all = (data?.approvals ?? []).map((one) => decided.get(one.number) ?? one);
  const waiting = all.filter((one) => one.state === "waiting");
  const done = all.filter((one) => one.decision !== null).reverse();
  return (
    <Panel title={waiting.length > 0 ? "Waiting for your approval" : "Approvals"} class="approvals">
      {error && <Problem error={error} />}
      {waiting.map((one) => (
        <section class="review" key={one.number} aria-label={`Approval ${one.number}`}>
          <h3>
            May <code><Long of={one.action} max={300} /></code> be committed?
          </h3>
          <p class="muted small">
            Step {one.depth} of trajectory {one.round}.{one.trajectory}, violation score {one.score}; without a decision
            by {time(one.due)}: {one.otherwise}.
          </p>
          <Decide path={path} of={one} onDone={(to) => setDecided((old) => new Map(old).set(to.number, to))} />
        </section>
      ))}
      {done.length > 0 && (
        <ul class="decided">
          {done.map((one) => (
            <li key={one.number}>
              {WHAT[one.decision?.verdict ?? "accept"]} by <Text of={one.decision?.by ?? ""} max={80} />:{" "}
              <code><Text of={one.decision?.line ?? one.action} max={200} /></code>
              {one.decision?.reason !== undefined && (
                <>
                  {" "}
                  (<Text of={one.decision.reason} max={300} />)
                </>
              )}
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}
