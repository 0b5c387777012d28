// The form for a new run. The daemon checks it; its refusal is shown at the field that it names.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get, getAsSpelled, post } from "./api";
import type { ApiError } from "./api";
import { AgentChoice, ROLES } from "./agent_choice";
import { jsonText } from "./exact";
import { asError, useLoad } from "./hooks";
import { InputFields, ProblemFields } from "./input_form";
import type { FormField } from "./input_form";
import { Copy, Problem } from "./parts";
import { go, href, usePlace } from "./router";
import {
  APPROVE_ELSE,
  BadForm,
  LIMITS,
  LIMIT_LABELS,
  SEARCH,
  START,
  STRATEGIES,
  VOTES,
  formOf,
  requestOf,
} from "./run_form";
import type { Form, Numeric } from "./run_form";
import { asCurl, asPython } from "./snippets";
import type { Spec } from "./spec";
import { Hidden, Text, visible, words } from "./text";
import type { Agent, Run, Task, TaskDetail } from "./types";

/** The names of the presets: the models that a chat client may ask for, without `prime` itself. */
async function loadPresets(signal: AbortSignal): Promise<string[]> {
  const { data } = await get<{ data: { id: string }[] }>("/v1/models", signal);
  return data.flatMap(({ id }) => (id.startsWith("prime/") ? [id.slice("prime/".length)] : []));
}

export function NewRun(): JSX.Element {
  const from = usePlace().query;
  const [form, setForm] = useState<Form>({ ...START, task: from.get("task") ?? START.task });
  const [error, setError] = useState<{ field: string; message: string }>();
  const [busy, setBusy] = useState(false);
  const tasks = useLoad("tasks", (signal) => get<{ tasks: Task[] }>("/v1/tasks", signal));
  const presets = useLoad("presets", loadPresets);
  const known = tasks.data?.tasks.find(({ slug }) => slug === form.task);
  const isOwn = form.kind === "input" && known !== undefined;
  const detail = useLoad(isOwn ? `task ${form.task}` : "no task", (signal) =>
    isOwn
      ? getAsSpelled<TaskDetail>(`/v1/tasks/${encodeURIComponent(form.task)}`, signal)
      : Promise.resolve(undefined),
  );
  const parent = from.get("from");
  useEffect(() => {
    if (parent === null) return;
    const spec = getAsSpelled<Spec>(`/v1/runs/${encodeURIComponent(parent)}/spec`);
    Promise.all([spec, get<{ agents: Agent[] }>("/v1/agents")]).then(
      ([of, { agents }]) => setForm((old) => ({ ...old, ...formOf(of, agents) })),
      (reason: unknown) => setError({ field: "", message: asError(reason).message }),
    );
  }, [parent]);
  const put = (change: Partial<Form>) => setForm((old) => ({ ...old, ...change }));
  const submit = async () => {
    setBusy(true);
    setError(undefined);
    try {
      const run = await post<Run>("/v1/runs", requestOf(form, detail.data));
      go(href(["runs", run.id], { again: parent }));
    } catch (reason) {
      if (reason instanceof BadForm) setError(reason);
      else
        setError({ field: (asError(reason) as ApiError).field, message: asError(reason).message });
    }
    setBusy(false);
  };
  // The field of an error is a path: it is shown at the narrowest field of the form that it is in.
  const at = error?.field ?? "";
  const inside = (name: string) =>
    at === name || at.startsWith(`${name}.`) || at.startsWith(`${name}[`);
  const shown: string[] = [
    ...(form.kind === "input"
      ? Object.keys({ ...detail.data?.example.input, ...form.input }).map((name) => `input.${name}`)
      : []),
    ...form.problem.constraints.map((_, index) => `problem.constraints[${index}]`),
    ...[
      "problem.statement",
      "problem.input",
      "problem.answer",
      "problem.constraints",
      "problem",
      "input",
    ],
    ...[
      "task",
      "difficulty",
      "index",
      "base_seed",
      "preset",
      "agents.executor",
      "agents.verifier",
      "agents.coordinator",
    ],
    ...[
      "strategy",
      "vote",
      "speculate",
      "force",
      ...SEARCH,
      ...LIMITS.map((name) => `budget.${name}`),
      "labels",
    ],
  ];
  const wrong = at === "" ? undefined : shown.find(inside);
  const refusal = (name: string) =>
    wrong === name ? (
      <span class="error" role="alert">
        {visible(error?.message ?? "")}
      </span>
    ) : null;
  const field: FormField = ({ name, label, hint, text = "", children }) => (
    <div class={wrong === name ? "field wrong" : "field"}>
      <label>
        <span>
          {label}
          {hint !== undefined && <span class="hint">{hint}</span>}
        </span>
        {children}
      </label>
      <Hidden of={text} />
      {refusal(name)}
    </div>
  );
  const choice = (
    name: "strategy" | "vote" | "speculate" | "approve_else",
    label: string,
    values: readonly string[],
  ) =>
    field({
      name,
      label,
      children: (
        <select value={form[name]} onChange={(event) => put({ [name]: event.currentTarget.value })}>
          <option value="">as configured</option>
          {values.map((value) => (
            <option key={value} value={value}>
              {words(value === "true" ? "yes" : value === "false" ? "no" : value)}
            </option>
          ))}
        </select>
      ),
    });
  const number = (field_name: Numeric, label: string, within = "", otherwise = "as configured") => {
    const name = `${within}${field_name}`;
    return field({
      name,
      label,
      text: form[field_name],
      children: (
        <input
          inputMode="decimal"
          value={form[field_name]}
          placeholder={otherwise}
          aria-invalid={wrong === name}
          onInput={(event) => put({ [field_name]: event.currentTarget.value })}
        />
      ),
    });
  };
  const body = () => {
    try {
      return jsonText(requestOf(form, detail.data));
    } catch (reason) {
      if (reason instanceof BadForm) setError(reason);
      throw reason;
    }
  };
  const agent = (role: (typeof ROLES)[number]) => (
    <div class={wrong === `agents.${role}` ? "field wrong" : "field"}>
      <AgentChoice
        label={`${role[0]?.toUpperCase()}${role.slice(1)}`}
        role={role}
        value={form[role]}
        explained
        {...(form.kind !== "problem" && known !== undefined && { task: form.task })}
        onValue={(name) => put({ [role]: name })}
      />
      {refusal(`agents.${role}`)}
    </div>
  );
  return (
    <main class="narrow">
      <div class="title">
        <h1>{parent === null ? "New run" : "Run again"}</h1>
      </div>
      {parent !== null && (
        <p class="muted">
          The form has the input, seed, agents, search and budget of{" "}
          <a href={href(["runs", parent])}>
            <Text of={parent} max={80} />
          </a>
          . What you leave as it is stays the same; where the daemon's configuration has changed
          since, the new run's page says so.
        </p>
      )}
      {tasks.error && <Problem error={tasks.error} retry={tasks.reload} />}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <fieldset class="kinds">
          <legend>What to solve</legend>
          {(
            [
              ["instance", "An instance of the benchmark"],
              ["input", "An input of your own"],
              ["problem", "A problem in words, with checks"],
            ] as const
          ).map(([kind, label]) => (
            <label key={kind} class="check">
              <input
                type="radio"
                name="kind"
                checked={form.kind === kind}
                onChange={() => put({ kind })}
              />
              {label}
            </label>
          ))}
        </fieldset>
        <datalist id="tasks">
          {tasks.data?.tasks.map(({ slug, title }) => (
            <option key={slug} value={slug}>
              {title}
            </option>
          ))}
        </datalist>
        <div class="grid">
          {form.kind !== "problem" &&
            field({
              name: "task",
              label: "Task",
              text: form.task,
              children: (
                <input
                  list="tasks"
                  value={form.task}
                  aria-invalid={wrong === "task"}
                  onInput={(event) => put({ task: event.currentTarget.value, input: {} })}
                />
              ),
            })}
          {form.kind === "instance" &&
            field({
              name: "difficulty",
              label: "Difficulty",
              children: (
                <select
                  value={form.difficulty}
                  onChange={(event) => put({ difficulty: event.currentTarget.value })}
                >
                  {["easy", "medium", "hard"].map((name, level) => (
                    <option key={name} value={name}>
                      {name}
                      {known ? ` (${known.sizes[level] ?? ""})` : ""}
                    </option>
                  ))}
                </select>
              ),
            })}
          {form.kind === "instance" && number("index", "Instance, 0 to 199", "", "0")}
          {form.kind === "instance" && number("base_seed", "Base seed", "", "42, the benchmark")}
        </div>
        {form.kind === "input" && (
          <InputFields
            task={detail.data}
            input={form.input}
            onInput={(name, text) => put({ input: { ...form.input, [name]: text } })}
            field={field}
            refusal={refusal}
          />
        )}
        {form.kind === "problem" && (
          <ProblemFields
            problem={form.problem}
            onProblem={(problem) => put({ problem })}
            field={field}
            refusal={refusal}
          />
        )}
        <h2>Agents</h2>
        <div class="grid">
          {ROLES.map(agent)}
          {field({
            name: "preset",
            label: "Preset",
            children: (
              <select
                value={form.preset}
                onChange={(event) => put({ preset: event.currentTarget.value })}
              >
                <option value="">none</option>
                {presets.data?.map((name) => (
                  <option key={name} value={name}>
                    {visible(name, 80)}
                  </option>
                ))}
              </select>
            ),
          })}
        </div>
        <label class="check">
          <input
            type="checkbox"
            checked={form.force}
            onChange={(event) => put({ force: event.currentTarget.checked })}
          />
          Try a task that the models have not learnt
        </label>
        {refusal("force")}
        <h2>Search</h2>
        <div class="grid">
          {number("fanout", "Trajectories a round")}
          {number("max_rounds", "Maximum rounds")}
          {number("seed", "Seed")}
          {number("temperature", "Temperature")}
          {number("top_p", "Nucleus (top p)")}
          {choice("strategy", "Strategy", STRATEGIES)}
          {choice("vote", "Vote", VOTES)}
          {choice("speculate", "Propose before the verdict", ["true", "false"])}
        </div>
        <h2>Approval</h2>
        <div class="grid">
          {field({
            name: "approve",
            label: "Steps that wait for approval",
            text: form.approve,
            children: (
              <input
                value={form.approve}
                placeholder="flagged, every 5 steps, step.depth > 3"
                aria-invalid={wrong === "approve"}
                onInput={(event) => put({ approve: event.currentTarget.value })}
              />
            ),
          })}
          {number("approve_within_ms", "To be decided within, in ms")}
          {choice("approve_else", "Otherwise", APPROVE_ELSE)}
        </div>
        <h2>Budget</h2>
        <div class="grid">
          {LIMITS.map((limit) => number(limit, LIMIT_LABELS[limit], "budget."))}
        </div>
        {field({
          name: "labels",
          label: "Labels",
          hint: "one a line, such as team: red",
          text: form.labels,
          children: (
            <textarea
              rows={2}
              value={form.labels}
              onInput={(event) => put({ labels: event.currentTarget.value })}
            />
          ),
        })}
        {error !== undefined && wrong === undefined && (
          <div class="problem" role="alert">
            <Text of={error.message} />
          </div>
        )}
        <div class="actions">
          <button class="primary" disabled={busy}>
            Start the run
          </button>
          <Copy label="Copy as curl" text={() => asCurl("POST", "/v1/runs", body())} />
          <Copy label="Copy as Python" text={() => asPython("POST", "/v1/runs", body())} />
        </div>
      </form>
    </main>
  );
}
