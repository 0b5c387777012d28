// A step: what was proposed, what was decided and why, and the states before and after.

import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { get } from "./api";
import { State } from "./drawing";
import { useLoad } from "./hooks";
import { Copy, Problem, Skeleton } from "./parts";
import { Review } from "./review";
import { asCurl, asPython } from "./snippets";
import { DECISIONS } from "./step_list";
import { Text, count, duration, visible } from "./text";
import { TryAgent } from "./try_agent";
import type { StepDetail } from "./types";

/** The daemon's sentence, with the names of constraints set off. */
function Explanation({ text }: { text: string }): JSX.Element {
  const parts = visible(text).split("`");
  return <p class="explanation">{parts.map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : part))}</p>;
}

function Figures({ detail }: { detail: StepDetail }): JSX.Element {
  const { step } = detail;
  const logprob = step.logprobs?.reduce((sum, value) => sum + value, 0);
  const figures: [string, string][] = [
    ["Event", count(detail.seq)],
    ["Depth", count(step.depth)],
    ["Score", String(step.score)],
    ["Prompt tokens", count(step.usage?.prompt ?? 0)],
    ["Completion tokens", count(step.usage?.completion ?? 0)],
    ["Run time", duration(step.elapsed_ms)],
    ["Since the step before", duration(Math.max(0, step.elapsed_ms - detail.previous_elapsed_ms))],
  ];
  if (logprob !== undefined) figures.push(["p of the proposal", Math.exp(logprob).toPrecision(3)]);
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

export function StepView(props: { run: string; task: string; seq: number; onSeq: (seq: number) => void }): JSX.Element {
  const { run, task, seq, onSeq } = props;
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
  if (error) return <Problem error={error} retry={reload} />;
  if (detail === undefined) return <Skeleton />;
  const { step } = detail;
  const decision = DECISIONS[step.decision];
  const input = { state: detail.before, action: step.action };
  return (
    <article class="step-view" aria-busy={data === undefined}>
      <div class={`verdict ${step.decision}`}>
        <span class="decision">
          <span aria-hidden="true">{decision.sign}</span> {decision.word}
        </span>
        <code class="line">
          <Text of={step.action || "(no line left)"} />
        </code>
      </div>
      <Explanation text={detail.explanation} />
      {detail.broken.length > 0 && (
        <table class="broken">
          <caption class="hidden">Violated constraints</caption>
          <thead>
            <tr>
              <th scope="col">Constraint</th>
              <th scope="col">Weight</th>
              <th scope="col">Meaning</th>
            </tr>
          </thead>
          <tbody>
            {detail.broken.map(({ name, weight, meaning, kind }) => (
              <tr key={name}>
                <th scope="row">
                  <Text of={name} max={80} />
                  <div class="muted small">{kind ?? "in words"}</div>
                </th>
                <td>{weight.toFixed(1)}</td>
                <td>
                  <Text of={meaning} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {step.needs_review && <Review run={run} seq={seq} />}
      <div class="states">
        <section aria-label="State before" tabIndex={0}>
          <h3>Before</h3>
          {detail.before == null ? (
            <p class="muted">Under this strategy the state follows from votes, not from this trajectory alone.</p>
          ) : (
            <State value={detail.before} task={task} input={given} />
          )}
        </section>
        <section aria-label="State after" tabIndex={0}>
          <h3>{step.decision === "proceed" ? "After" : "After, had it been accepted"}</h3>
          {detail.after == null ? (
            <p class="muted">None: the line cannot be applied in this state.</p>
          ) : (
            <State value={detail.after} other={detail.before} task={task} input={given} />
          )}
        </section>
      </div>
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
        <details>
          <summary>Findings of each verifier</summary>
          <Text of={JSON.stringify(step.opinions, null, 2)} block />
        </details>
      )}
      {detail.view !== null && (
        <details>
          <summary>The state as prompts show it</summary>
          <Text of={detail.view} block />
        </details>
      )}
      <details>
        <summary>Stack: {count(step.depth)} committed steps</summary>
        <ol class="stack" reversed>
          {detail.stack.toReversed().map((frame) => (
            <li key={frame.seq} value={frame.depth}>
              <button class="link" onClick={() => onSeq(frame.seq)}>
                <Text of={frame.action} max={120} />
              </button>
            </li>
          ))}
        </ol>
        {detail.stack.length < step.depth && <p class="muted">The last {detail.stack.length} are shown.</p>}
      </details>
      <TryAgent key={`${run} ${detail.seq}`} run={run} seq={detail.seq} line={step.action} />
      <Figures detail={detail} />
      <div class="actions">
        <Copy label="Copy link" text={() => location.href} />
        <Copy label="Copy as curl" text={() => asCurl("GET", path)} />
        <Copy label="Copy as Python" text={() => asPython("GET", path)} />
        <Copy label="Copy as test input" text={() => JSON.stringify({ task, ...input, expected: step.violations }, null, 2)} />
      </div>
    </article>
  );
}
