// A step: what was proposed, what was decided and why, and the states before and after.

import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { get } from "./api";
import { decided } from "./decisions";
import { State } from "./drawing";
import { isUnchecked } from "./essentials";
import { prettyJson } from "./exact";
import { Fork } from "./fork";
import { useLoad } from "./hooks";
import { Copy, Problem, Skeleton } from "./parts";
import { Review } from "./review";
import { asCurl, asPython } from "./snippets";
import { Quoted, Text, count, duration, visible } from "./text";
import { TryAgent } from "./try_agent";
import type { Run, StepDetail } from "./types";
import { SentToModels } from "./writing";

/** Why the step was accepted or rejected. */
function Why({ detail }: { detail: StepDetail }): JSX.Element {
  return (
    <div class="explanation">
      <h3>Why</h3>
      <p>
        <Quoted text={detail.explanation} />
      </p>
      <Broken constraints={detail.broken} />
    </div>
  );
}

/** What came of it. */
function Next({
  detail,
  onPosition,
}: {
  detail: StepDetail;
  onPosition?: (position: number) => void;
}): JSX.Element {
  const { position, text } = detail.then;
  return (
    <div class="explanation next">
      <h3>What happened next</h3>
      <p>
        <Quoted text={text} />{" "}
        {position !== null && onPosition !== undefined && (
          <button class="link" onClick={() => onPosition(position)}>
            Go to step {count(position)} ›
          </button>
        )}
      </p>
    </div>
  );
}

function Broken({ constraints }: { constraints: StepDetail["broken"] }): JSX.Element | null {
  if (constraints.length === 0) return null;
  return (
    <table class="broken">
      <caption class="hidden">Violated constraints</caption>
      <thead>
        <tr>
          <th scope="col">Constraint</th>
          <th scope="col">What it asks for</th>
          <th scope="col" class="num">
            Weight
          </th>
        </tr>
      </thead>
      <tbody>
        {constraints.map(({ name, weight, meaning, kind }) => (
          <tr key={name}>
            <th scope="row">
              <Text of={name} max={80} />
              <div class="muted small">{kind ?? "in words"}</div>
            </th>
            <td>
              <Quoted text={meaning} />
            </td>
            <td class="num">{count(weight)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Figures({ detail }: { detail: StepDetail }): JSX.Element {
  const { step } = detail;
  const waited = (role: "executor" | "verifier" | "coordinator") => {
    const ms = step.waited_ms?.[role] ?? 0;
    return ms === 0 ? "at once" : duration(ms);
  };
  const logprob = step.logprobs?.reduce((sum, value) => sum + value, 0);
  const figures: [string, string][] = [
    ["Event", count(detail.seq)],
    ["Depth", count(step.depth)],
    ["Score", String(step.score)],
    ["Prompt tokens", count(step.usage?.prompt ?? 0)],
    ["Completion tokens", count(step.usage?.completion ?? 0)],
    ...(step.usage?.cost === undefined
      ? []
      : [["Cost", count(step.usage.cost)] satisfies [string, string]]),
    ["Executor replied", waited("executor")],
    ["Verifier replied", waited("verifier")],
    ["Coordinator replied", waited("coordinator")],
    ["Since the step before", duration(Math.max(0, step.elapsed_ms - detail.previous_elapsed_ms))],
    ["Run time", duration(step.elapsed_ms)],
  ];
  if (logprob !== undefined)
    figures.push(["p of the proposal", `≈ ${Math.exp(logprob).toPrecision(3)}`]);
  if (detail.judge !== null) {
    const models = Object.entries(detail.judge.models ?? {}).map(([name, digest]) =>
      digest === null ? name : `${name} (${digest.slice(0, 12)})`,
    );
    const judge = [`${detail.judge.verifier}, version ${detail.judge.version}`, ...models].join(
      ", ",
    );
    figures.push(["Judged by", visible(judge, 120)]);
  }
  if (detail.basis !== null) {
    figures.push(["Evaluated", visible(detail.basis.evaluated.join(", ") || "nothing", 80)]);
  }
  if (step.source !== undefined) figures.push(["Source", visible(step.source, 80)]);
  return (
    <dl class="figures">
      {figures.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function StepView(props: {
  run: Run;
  seq: number;
  onSeq?: (seq: number) => void;
  onPosition?: (position: number) => void;
  /** True if its review is asked for elsewhere on the page. */
  reviewed?: boolean;
  /** Which run it is of, where a page shows two. */
  of?: string;
}): JSX.Element {
  const { seq, onSeq, onPosition } = props;
  const { id: run, task } = props.run;
  const path = `/v1/runs/${encodeURIComponent(run)}/steps/${seq}`;
  const { data, error, reload } = useLoad(path, (signal) => get<StepDetail>(path, signal));
  const specPath = `/v1/runs/${encodeURIComponent(run)}/spec`;
  // Without its input, a state is drawn as far as it says by itself.
  const spec = useLoad(specPath, (signal) => get<{ input?: unknown }>(specPath, signal));
  const given = spec.data?.input;
  // While the next step is on its way, the last one stays, so that a replay does not flicker.
  const last = useRef<{ run: string; detail: StepDetail }>();
  if (data !== undefined) last.current = { run, detail: data };
  const detail = last.current?.run === run ? last.current.detail : undefined;
  // A daemon that is away takes nothing from the page.
  if (detail === undefined) return error ? <Problem error={error} retry={reload} /> : <Skeleton />;
  const { step } = detail;
  // Where its basis is not known, the run's verifier says whether anything was checked.
  const unchecked =
    detail.basis === null
      ? isUnchecked(props.run)
      : detail.basis.methods.length === 0 && detail.basis.kinds.length === 0;
  const decision = decided(step, unchecked);
  const suffix = props.of === undefined ? "" : `, ${props.of}`;
  const input = { state: detail.before, action: step.action };
  return (
    <article class="step-view" aria-busy={data === undefined}>
      {error && error.status !== 0 && <Problem error={error} retry={reload} />}
      <div class={`verdict ${step.decision} ${decision.isClean ? "" : "unchecked"}`}>
        <span class="decision">
          <span aria-hidden="true">{decision.sign}</span> {decision.word}
        </span>
        <code class="line">
          <Text of={step.action || "(no line left)"} />
        </code>
      </div>
      <Why detail={detail} />
      {step.needs_review && props.reviewed !== true && <Review run={run} seq={seq} of={suffix} />}
      <div class="states">
        <section aria-label={`State before${suffix}`} tabIndex={0}>
          <h3>Before</h3>
          {detail.before == null ? (
            <p class="muted">
              Under this strategy the state does not follow from this trajectory alone.
            </p>
          ) : (
            <State value={detail.before} task={task} input={given} />
          )}
        </section>
        <section aria-label={`State after${suffix}`} tabIndex={0}>
          <h3>{step.decision === "proceed" ? "After" : "After, had it been accepted"}</h3>
          {detail.after == null ? (
            <p class="muted">None: the line cannot be applied in this state.</p>
          ) : (
            <State value={detail.after} other={detail.before} task={task} input={given} />
          )}
        </section>
      </div>
      <Next detail={detail} onPosition={onPosition} />
      {step.reasoning !== undefined && (
        <details>
          <summary>What the model thought</summary>
          <Text of={step.reasoning} block />
        </details>
      )}
      {step.derivation !== undefined && (
        <details open={step.derivation.length < 400}>
          <summary>Derivation</summary>
          <Text of={step.derivation} block />
        </details>
      )}
      {step.feedback !== undefined && (
        <details>
          <summary>Feedback to the executor</summary>
          <Text of={step.feedback} block />
        </details>
      )}
      {step.opinions !== undefined && (
        <details open={props.reviewed}>
          <summary>Findings of each verifier</summary>
          <Text of={prettyJson(step.opinions)} block />
        </details>
      )}
      {detail.view !== null && (
        <details>
          <summary>The state as prompts show it</summary>
          <Text of={detail.view} block />
        </details>
      )}
      <SentToModels key={`sent ${run} ${detail.seq}`} run={run} seq={detail.seq} />
      <details>
        <summary>
          Stack: {step.depth === 1 ? "1 committed step" : `${count(step.depth)} committed steps`}
          {detail.pops > 0 && `, of which the last ${count(detail.pops)} were undone here`}
        </summary>
        <ol class="stack" reversed>
          {detail.stack.toReversed().map((frame) => (
            <li key={frame.seq} value={frame.depth}>
              <button
                class="link"
                disabled={onSeq === undefined}
                onClick={() => onSeq?.(frame.seq)}
              >
                <Text of={frame.action} max={120} />
              </button>
            </li>
          ))}
        </ol>
        {detail.stack.length < step.depth && (
          <p class="muted">
            The last {detail.stack.length} are shown; the stack of the lowest one has those below
            it.
          </p>
        )}
      </details>
      <Fork key={`fork ${run} ${detail.seq}`} run={props.run} seq={detail.seq} />
      <TryAgent key={`${run} ${detail.seq}`} run={run} seq={detail.seq} line={step.action} />
      <Figures detail={detail} />
      <div class="actions">
        <Copy label="Copy link" text={() => location.href} />
        <Copy label="Copy as curl" text={() => asCurl("GET", path)} />
        <Copy label="Copy as Python" text={() => asPython("GET", path)} />
        <Copy
          label="Copy as test input"
          text={() => prettyJson({ task, ...input, expected: step.violations })}
        />
      </div>
    </article>
  );
}
