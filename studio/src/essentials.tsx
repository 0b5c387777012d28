// What a run was asked, what came out, and with which settings: the top of its page.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, getAsSpelled, post } from "./api";
import { causes } from "./causes";
import { State } from "./drawing";
import { Exact, prettyJson } from "./exact";
import { asError, useLoad } from "./hooks";
import { LabelForm } from "./labels";
import { isOver } from "./live";
import { Panel, Problem, Skeleton } from "./parts";
import { href } from "./router";
import { differences, instanceOf } from "./spec";
import type { Difference, Spec } from "./spec";
import { Long, Quoted, Text, count, duration, outcomeOf, some, visible, words } from "./text";
import type { Run, TaskDetail } from "./types";

/**
 * Answers of longer traces are compared with the right one on request: making that takes the daemon
 * a while.
 */
const COMPARED_AT_ONCE = 20_000;

/** True if a run's verifier looks at nothing. */
export function isUnchecked(run: Run): boolean {
  return run.verifier === "none" && run.checked_kinds.length === 0;
}

/** Why an answer is not verified. */
function unverified(run: Run): string {
  if (isUnchecked(run)) return "its verifier, `none`, checks nothing";
  switch (run.assurance) {
    case "violated":
      return "a step broke a constraint, and the coordinator tolerated it";
    case "unchecked":
      return "nobody checked some of its steps";
    default:
      return "it is not verified";
  }
}

/** What became of a run, in a sentence. */
export function verdictOf(run: Run): string {
  if (run.imported !== undefined) {
    return `Imported from ${visible(run.imported.node)}, which says "${words(run.status)}". This daemon has judged none of its steps.`;
  }
  const [winner] = run.votes;
  const votes =
    winner === undefined
      ? ""
      : ` with ${some(winner.votes, "vote")} from ${some(run.trajectories, "trajectory", "trajectories")}`;
  switch (run.status) {
    case "queued":
      return run.waiting_for === undefined
        ? "Waiting for a place among the open runs."
        : "Waiting for an agent.";
    case "running":
      return "The agents are at work.";
    case "waiting":
      return "All that is left of it waits for approval.";
    case "verified":
      return `Answered${votes}. The checks of \`${run.verifier}\` found every step clean, and they let no wrong answer of this task through.`;
    case "unrefuted":
      return `Answered${votes}. \`${run.verifier}\` found no fault in any step, which is no proof.`;
    case "unverified":
      return run.answer === null
        ? `No answer: ${outcomeOf(run.outcome ?? "it ended")}.`
        : `Answered${votes}, but ${unverified(run)}.`;
    case "failed":
      return `Failed: ${run.failure ?? outcomeOf(run.outcome ?? "")}`;
    case "cancelled":
      return "Cancelled; what was committed is kept.";
  }
}

export interface Asked {
  spec: Spec | undefined;
  error: ReturnType<typeof asError> | undefined;
}

/** What a run was accepted with, which does not change. */
export function useSpec(id: string): Asked & { reload: () => void } {
  const path = `/v1/runs/${encodeURIComponent(id)}/spec`;
  const { data, error, reload } = useLoad(path, (signal) => get<Spec>(path, signal));
  return { spec: data, error, reload };
}

/** A panel that is so low that the steps below it are in sight. A button shows all of it. */
function Card(props: { title: string; label: string; children: ComponentChildren }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const [isCut, setCut] = useState(false);
  const [isWhole, setWhole] = useState(false);
  useEffect(() => {
    if (content.current === null) return undefined;
    const observer = new ResizeObserver(() => {
      const [inner, outer] = [content.current, box.current];
      if (inner !== null && outer !== null) setCut(inner.offsetHeight > outer.clientHeight);
    });
    observer.observe(content.current);
    return () => observer.disconnect();
  }, []);
  const more = (isCut || isWhole) && (
    <button class="link" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
      {isWhole ? "Show less" : "Show all"}
    </button>
  );
  return (
    <Panel title={props.title} class={`essential ${isWhole ? "whole" : ""}`} actions={more}>
      <div ref={box} class="inner" tabIndex={0} role="region" aria-label={props.label}>
        <div ref={content}>{props.children}</div>
      </div>
    </Panel>
  );
}

/** What a run was asked. */
export function Question({ spec }: { spec: Spec }): JSX.Element {
  const isProblem = spec.task === "problem";
  const path = `/v1/tasks/${encodeURIComponent(spec.task)}`;
  const { data: task } = useLoad(isProblem ? "no task" : path, (signal) =>
    isProblem ? Promise.resolve(undefined) : get<TaskDetail>(path, signal),
  );
  const { statement, input } = spec.input as { statement?: string; input?: unknown };
  const given = isProblem ? input : spec.input;
  return (
    <Card title="Question" label="What was asked">
      {isProblem ? (
        <p class="statement">
          <Long of={statement ?? ""} max={2000} />
        </p>
      ) : (
        <p class="statement">
          {task === undefined ? <Text of={spec.task} max={80} /> : <Quoted text={task.problem} />}{" "}
          <a href={href(["tasks", spec.task])}>The task</a>
        </p>
      )}
      {given != null && (
        <>
          <h3>Input</h3>
          <State value={given} task={spec.task} input={given} isLow />
        </>
      )}
    </Card>
  );
}

interface Judged {
  right: boolean;
  judged_by: string;
}

/** The answer beside the right one, as far as the benchmark knows it. */
function Comparison({ run, spec }: { run: Run; spec: Spec }): JSX.Element | null {
  const isAsked = spec.task !== "problem" && run.answer !== null && isOver(run);
  const [wanted, setWanted] = useState(run.steps <= COMPARED_AT_ONCE);
  const runs = isAsked && wanted;
  const { data, error } = useLoad(runs ? `judged ${run.id}` : "not judged", async () => {
    if (!runs) return undefined;
    const instance = instanceOf(spec);
    const of =
      instance === undefined || instance.base_seed !== ""
        ? {
            task: spec.task,
            input: (await getAsSpelled<Spec>(`/v1/runs/${encodeURIComponent(run.id)}/spec`)).input,
          }
        : { task: spec.task, difficulty: instance.difficulty, index: Number(instance.index) };
    return post<Judged>("/v1/verify", { ...of, answer: run.answer });
  });
  if (!isAsked) return null;
  if (!wanted) {
    return (
      <button class="link" onClick={() => setWanted(true)}>
        Compare it with the right answer
      </button>
    );
  }
  if (error)
    return (
      <p class="small">Whether it is right could not be found out: {visible(error.message, 300)}</p>
    );
  if (data === undefined) return <p class="muted small">Comparing with the right answer…</p>;
  const how =
    data.judged_by === "goal"
      ? "it reaches the task's goal"
      : "it is what the task's own algorithm gives";
  return data.right ? (
    <p class="right">✓ Right: {how}.</p>
  ) : (
    <p class="wrong-answer">
      ✗ Wrong:{" "}
      {data.judged_by === "goal"
        ? "it misses the task's goal"
        : "the task's own algorithm gives another"}
      .
    </p>
  );
}

function Answer({ run, spec }: { run: Run; spec: Spec | undefined }): JSX.Element {
  return (
    <Card title="Answer" label="What came out">
      <p class="in-words">
        <Quoted text={verdictOf(run)} />
      </p>
      {spec !== undefined && <Comparison run={run} spec={spec} />}
      {run.answer !== null && run.answer !== undefined && (
        <State value={run.answer} task={run.task} input={spec?.input} isLow />
      )}
    </Card>
  );
}

type Setting = [name: string, value: string];

/** The models that a run asks, those of engines with their digests. */
export function modelsOf(run: Run): string[] {
  const engines = Object.entries(run.engines ?? {}).map(([name, digest]) =>
    digest === null ? name : `${name} (SHA-256 ${digest.slice(0, 12)}…)`,
  );
  return [...engines, ...(run.models ?? []).filter((name) => !(name in (run.engines ?? {})))];
}

function settingsOf(run: Run, spec: Spec): Setting[] {
  const { plan, sampling } = spec;
  const models = modelsOf(run);
  const most = (value: unknown, unit: string) =>
    String(value) === "0" ? [] : [`${count(value as number | Exact)} ${unit}`];
  const { steps, tokens, completion_tokens, cost = 0, wall_ms } = plan.budget;
  const time_limit = wall_ms instanceof Exact ? `${wall_ms.text} ms` : duration(wall_ms);
  return [
    ["Executor", run.agents.executor],
    ["Verifier", run.agents.verifier],
    ["Coordinator", run.agents.coordinator],
    ["Models", models.length === 0 ? "none" : models.join(", ")],
    ["Seed", String(sampling.seed)],
    [
      "Search",
      `${words(plan.strategy)}, ${some(Number(plan.fanout), "trajectory", "trajectories")} a round, at most ${some(Number(plan.max_rounds), "round")}`,
    ],
    [
      "Vote",
      `${words(plan.vote)}, until ${count(Math.round(1e6 * Number(plan.confidence)) / 1e4)} % agree`,
    ],
    ["Sampling", `temperature ${String(sampling.temperature)}, top p ${String(sampling.top_p)}`],
    [
      "Budget",
      [
        ...most(steps, "proposals"),
        ...most(tokens, "tokens"),
        ...most(completion_tokens, "completion tokens"),
        ...most(cost, "of money"),
        time_limit,
      ].join(", "),
    ],
    ["Configuration", spec.config_hash],
  ];
}

function Settings({ run, spec }: { run: Run; spec: Spec }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const { recorded, plan, sampling, overrides } = spec;
  return (
    <Card title="Settings" label="With what it ran">
      <dl class="settings">
        {settingsOf(run, spec).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <Long of={value} max={300} />
            </dd>
          </div>
        ))}
      </dl>
      {run.notes.map((note) => (
        <p key={note} class="small">
          <Quoted text={note} />
        </p>
      ))}
      <LabelForm key={run.id} run={run} />
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>Every setting</summary>
        {isOpen && (
          <Text
            of={prettyJson({ agents: recorded, plan, sampling, overrides })}
            max={8000}
            block
          />
        )}
      </details>
    </Card>
  );
}

/** Settings or inputs in which two runs differ. */
export function Differences({
  found,
  names,
}: {
  found: Difference[];
  names: [string, string];
}): JSX.Element {
  const shown = (value: unknown) =>
    value === undefined ? (
      <span class="muted">not there</span>
    ) : (
      <code>
        <Long of={value} max={160} />
      </code>
    );
  return (
    <div class="scroll costs differences" tabIndex={0} role="region" aria-label="What differs">
      <table>
        <thead>
          <tr>
            <th scope="col">What differs</th>
            <th scope="col">{names[0]}</th>
            <th scope="col">{names[1]}</th>
          </tr>
        </thead>
        <tbody>
          {found.map(({ path, a, b }) => (
            <tr key={path}>
              <th scope="row">
                <Text of={path} max={120} />
              </th>
              <td>{shown(a)}</td>
              <td>{shown(b)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Says if a run that was started again is the same. */
function Again({ parent, spec }: { parent: string; spec: Spec }): JSX.Element | null {
  const { spec: old, error } = useSpec(parent);
  if (error || old === undefined) return null;
  const found = differences(old, spec);
  const name = (
    <a href={href(["runs", parent])}>
      <Text of={parent} max={80} />
    </a>
  );
  if (found.length === 0)
    return (
      <p class="note" role="status">
        The same run as {name}: same input, seed, agents and settings.
      </p>
    );
  return (
    <details class="note">
      <summary>
        Started again from {name}, with{" "}
        {causes(found, spec).join("; ")}
      </summary>
      <Differences found={found} names={["Before", "Now"]} />
    </details>
  );
}

export function Essentials({
  run,
  asked,
  again,
}: {
  run: Run;
  asked: ReturnType<typeof useSpec>;
  again: string | null;
}): JSX.Element {
  const { spec, error, reload } = asked;
  return (
    <>
      {again !== null && spec !== undefined && <Again parent={again} spec={spec} />}
      {error && error.status !== 0 && <Problem error={error} retry={reload} />}
      <div class="essentials">
        {spec === undefined ? <Skeleton rows={4} /> : <Question spec={spec} />}
        <Answer run={run} spec={spec} />
        {spec !== undefined && <Settings run={run} spec={spec} />}
      </div>
    </>
  );
}
