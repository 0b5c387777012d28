// The form for a new run. The daemon checks it; its refusal is shown at the field that it names.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get, post } from "./api";
import type { ApiError } from "./api";
import { asError, useLoad } from "./hooks";
import { Copy, Problem } from "./parts";
import { go, href, usePlace } from "./router";
import { asCurl, asPython } from "./snippets";
import { Text, visible } from "./text";
import type { Agent, Run, Task } from "./types";

const PROBLEM = {
  statement: "Give three different numbers from `of` that add up to `sum`.",
  input: { of: [3, 5, 8, 13], sum: 21 },
  answer: { schema: { type: "array", items: { type: "integer" }, minItems: 3, maxItems: 3 } },
  constraints: [{ name: "sum", severity: "critical", check: "answer[0] + answer[1] + answer[2] == input.sum" }],
};

type Kind = "instance" | "input" | "problem";

interface Form {
  kind: Kind;
  task: string;
  difficulty: string;
  index: string;
  input: string;
  problem: string;
  preset: string;
  executor: string;
  verifier: string;
  coordinator: string;
  fanout: string;
  max_rounds: string;
  seed: string;
  temperature: string;
}

const START: Form = {
  kind: "instance",
  task: "bubble-sort",
  difficulty: "easy",
  index: "0",
  input: "{}",
  problem: JSON.stringify(PROBLEM, null, 2),
  preset: "",
  executor: "",
  verifier: "",
  coordinator: "",
  fanout: "",
  max_rounds: "",
  seed: "",
  temperature: "",
};

class BadForm extends Error {
  constructor(
    readonly field: string,
    message: string,
  ) {
    super(message);
  }
}

function json(field: string, text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new BadForm(field, `This is not JSON: ${String(error).replace(/^SyntaxError: /, "")}`);
  }
}

function numbers(form: Form, fields: (keyof Form)[]): Record<string, number> {
  const given = fields.filter((field) => form[field].trim() !== "");
  return Object.fromEntries(
    given.map((field) => {
      const value = Number(form[field]);
      if (!Number.isFinite(value)) throw new BadForm(field, "Give a number.");
      return [field, value];
    }),
  );
}

function requestOf(form: Form): Record<string, unknown> {
  const roles = (["executor", "verifier", "coordinator"] as const).filter((role) => form[role] !== "");
  const agents = Object.fromEntries(roles.map((role) => [role, form[role]]));
  const what = {
    instance: () => ({ task: form.task, difficulty: form.difficulty, ...numbers(form, ["index"]) }),
    input: () => ({ task: form.task, input: json("input", form.input) }),
    problem: () => ({ problem: json("problem", form.problem) }),
  }[form.kind]();
  return {
    ...what,
    ...(form.preset.trim() === "" ? {} : { preset: form.preset.trim() }),
    ...numbers(form, ["fanout", "max_rounds", "seed", "temperature"]),
    ...(roles.length === 0 ? {} : { agents }),
  };
}

export function NewRun(): JSX.Element {
  const from = usePlace().query;
  const [form, setForm] = useState<Form>({ ...START, task: from.get("task") ?? START.task });
  const [error, setError] = useState<{ field: string; message: string }>();
  const [busy, setBusy] = useState(false);
  const tasks = useLoad("tasks", (signal) => get<{ tasks: Task[] }>("/v1/tasks", signal));
  const agents = useLoad("agents", (signal) => get<{ agents: Agent[] }>("/v1/agents", signal));
  const parent = from.get("from");
  useEffect(() => {
    if (parent === null) return;
    const id = encodeURIComponent(parent);
    get<{ task: string; input: unknown; sampling: { seed: number } }>(`/v1/runs/${id}/spec`).then(
      ({ task, input, sampling }) => {
        const text = JSON.stringify(input, null, 2);
        const what: Partial<Form> =
          task === "problem" ? { kind: "problem", problem: text } : { kind: "input", task, input: text };
        setForm((old) => ({ ...old, ...what, seed: String(sampling.seed) }));
      },
      (reason: unknown) => setError({ field: "", message: asError(reason).message }),
    );
  }, [parent]);
  const set = (field: keyof Form) => (event: { currentTarget: { value: string } }) => {
    const { value } = event.currentTarget;
    setForm((old) => ({ ...old, [field]: value }));
  };
  const submit = async () => {
    setBusy(true);
    setError(undefined);
    try {
      const run = await post<Run>("/v1/runs", requestOf(form));
      go(href(["runs", run.id]));
    } catch (reason) {
      if (reason instanceof BadForm) setError(reason);
      else setError({ field: (asError(reason) as ApiError).field, message: asError(reason).message });
    }
    setBusy(false);
  };
  const named = (name: string): boolean => {
    const field = error?.field ?? "";
    return field === name || field.endsWith(`.${name}`) || field.startsWith(`${name}.`);
  };
  const Field = ({ name, label, children }: { name: string; label: string; children: ComponentChildren }) => (
    <div class={named(name) ? "field wrong" : "field"}>
      <label>
        <span>{label}</span>
        {children}
      </label>
      {named(name) && (
        <span class="error" role="alert">
          {visible(error?.message ?? "")}
        </span>
      )}
    </div>
  );
  const number = (name: keyof Form, label: string) =>
    Field({
      name,
      label,
      children: (
        <input inputMode="decimal" value={form[name]} placeholder="as configured" onInput={set(name)} aria-invalid={named(name)} />
      ),
    });
  const role = (name: "executor" | "verifier" | "coordinator") => {
    const choices = agents.data?.agents.filter((agent) => agent.role === name && agent.allowed) ?? [];
    return Field({
      name,
      label: name[0]?.toUpperCase() + name.slice(1),
      children: (
        <select value={form[name]} onChange={set(name)}>
          <option value="">as configured</option>
          {choices.map((agent) => (
            <option key={agent.name} value={agent.name}>
              {visible(agent.name, 60)}
              {agent.default ? " (configured)" : ""}
            </option>
          ))}
        </select>
      ),
    });
  };
  const task = tasks.data?.tasks.find(({ slug }) => slug === form.task);
  const isElsewhere = error !== undefined && !Object.keys(START).some(named);
  const body = () => JSON.stringify(requestOf(form));
  return (
    <main class="narrow">
      <div class="title">
        <h1>New run</h1>
      </div>
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
              <input type="radio" name="kind" checked={form.kind === kind} onChange={() => setForm({ ...form, kind })} />
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
            Field({
              name: "task",
              label: "Task",
              children: (
                <input list="tasks" value={form.task} onInput={set("task")} aria-invalid={named("task")} />
              ),
            })}
          {form.kind === "instance" &&
            Field({
              name: "difficulty",
              label: "Difficulty",
              children: (
                <select value={form.difficulty} onChange={set("difficulty")}>
                  {["easy", "medium", "hard"].map((name, at) => (
                    <option key={name} value={name}>
                      {name}
                      {task ? ` (${task.sizes[at] ?? ""})` : ""}
                    </option>
                  ))}
                </select>
              ),
            })}
          {form.kind === "instance" && number("index", "Instance, 0 to 199")}
        </div>
        {form.kind === "input" &&
          Field({
            name: "input",
            label: "Input (JSON)",
            children: <textarea rows={6} spellcheck={false} value={form.input} onInput={set("input")} />,
          })}
        {form.kind === "problem" &&
          Field({
            name: "problem",
            label: "Problem (JSON: statement, input, answer, constraints)",
            children: <textarea rows={16} spellcheck={false} value={form.problem} onInput={set("problem")} />,
          })}
        <h2>Agents</h2>
        <div class="grid">
          {role("executor")}
          {role("verifier")}
          {role("coordinator")}
          {Field({
            name: "preset",
            label: "Preset",
            children: <input value={form.preset} placeholder="none" onInput={set("preset")} />,
          })}
        </div>
        <h2>Search</h2>
        <div class="grid">
          {number("fanout", "Trajectories a round")}
          {number("max_rounds", "Rounds at most")}
          {number("seed", "Seed")}
          {number("temperature", "Temperature")}
        </div>
        {isElsewhere && (
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
