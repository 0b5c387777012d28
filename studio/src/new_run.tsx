// The form for a new run. The daemon checks it; its refusal is shown at the field that it names.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get, post } from "./api";
import type { ApiError } from "./api";
import { AgentChoice, ROLES } from "./agent_choice";
import { asError, useLoad } from "./hooks";
import { EXAMPLE, InputFields, ProblemFields, definitionOf, problemOf } from "./input_form";
import type { FormField, ProblemForm } from "./input_form";
import { Copy, Problem } from "./parts";
import { go, href, usePlace } from "./router";
import { asCurl, asPython } from "./snippets";
import { Text, visible } from "./text";
import type { Run, Task, TaskDetail } from "./types";

type Kind = "instance" | "input" | "problem";

interface Form {
  kind: Kind;
  task: string;
  difficulty: string;
  index: string;
  /** The text of each field of the input that was changed; the others are those of the task's example. */
  input: Record<string, string>;
  problem: ProblemForm;
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
  input: {},
  problem: EXAMPLE,
  preset: "",
  executor: "",
  verifier: "",
  coordinator: "",
  fanout: "",
  max_rounds: "",
  seed: "",
  temperature: "",
};

type Numeric = "index" | "fanout" | "max_rounds" | "seed" | "temperature";

class BadForm extends Error {
  constructor(
    readonly field: string,
    message: string,
  ) {
    super(message);
  }
}

/** Reads the JSON of a field. */
function json(field: string, text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new BadForm(field, `This is not JSON: ${String(error).replace(/^SyntaxError: /, "")}`);
  }
}

function numbers(form: Form, fields: Numeric[]): Record<string, number> {
  const given = fields.filter((field) => form[field].trim() !== "");
  return Object.fromEntries(
    given.map((field) => {
      const value = Number(form[field]);
      if (!Number.isFinite(value)) throw new BadForm(field, "Give a number.");
      return [field, value];
    }),
  );
}

function requestOf(form: Form, task: TaskDetail | undefined): Record<string, unknown> {
  const agents = Object.fromEntries(ROLES.filter((role) => form[role] !== "").map((role) => [role, form[role]]));
  const input = () => {
    const given = Object.entries(form.input).map(([name, text]) => [name, json(`input.${name}`, text)] as const);
    return { ...task?.example.input, ...Object.fromEntries(given) };
  };
  const what = {
    instance: () => ({ task: form.task, difficulty: form.difficulty, ...numbers(form, ["index"]) }),
    input: () => ({ task: form.task, input: input() }),
    problem: () => ({ problem: definitionOf(form.problem, json) }),
  }[form.kind]();
  return {
    ...what,
    ...(form.preset === "" ? {} : { preset: form.preset }),
    ...numbers(form, ["fanout", "max_rounds", "seed", "temperature"]),
    ...(Object.keys(agents).length === 0 ? {} : { agents }),
  };
}

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
    isOwn ? get<TaskDetail>(`/v1/tasks/${encodeURIComponent(form.task)}`, signal) : Promise.resolve(undefined),
  );
  const parent = from.get("from");
  useEffect(() => {
    if (parent === null) return;
    const id = encodeURIComponent(parent);
    get<{ task: string; input: Record<string, unknown>; sampling: { seed: number } }>(`/v1/runs/${id}/spec`).then(
      ({ task, input, sampling }) => {
        const fields = Object.entries(input).map(([name, value]) => [name, JSON.stringify(value)] as const);
        const what: Partial<Form> =
          task === "problem" ? { kind: "problem", problem: problemOf(input) } : { kind: "input", task, input: Object.fromEntries(fields) };
        setForm((old) => ({ ...old, ...what, seed: String(sampling.seed) }));
      },
      (reason: unknown) => setError({ field: "", message: asError(reason).message }),
    );
  }, [parent]);
  const put = (change: Partial<Form>) => setForm((old) => ({ ...old, ...change }));
  const submit = async () => {
    setBusy(true);
    setError(undefined);
    try {
      const run = await post<Run>("/v1/runs", requestOf(form, detail.data));
      go(href(["runs", run.id]));
    } catch (reason) {
      if (reason instanceof BadForm) setError(reason);
      else setError({ field: (asError(reason) as ApiError).field, message: asError(reason).message });
    }
    setBusy(false);
  };
  // The field of an error is a path: it is shown at the narrowest field of the form that it is in.
  const at = error?.field ?? "";
  const inside = (name: string) => at === name || at.startsWith(`${name}.`) || at.startsWith(`${name}[`);
  const shown: string[] = [
    ...(form.kind === "input" ? Object.keys({ ...detail.data?.example.input, ...form.input }).map((name) => `input.${name}`) : []),
    ...form.problem.constraints.map((_, index) => `problem.constraints[${index}]`),
    ...["problem.statement", "problem.input", "problem.answer", "problem.constraints", "problem", "input"],
    ...["task", "difficulty", "index", "preset", "agents.executor", "agents.verifier", "agents.coordinator"],
    ...["fanout", "max_rounds", "seed", "temperature"],
  ];
  const wrong = at === "" ? undefined : shown.find(inside);
  const refusal = (name: string) =>
    wrong === name ? (
      <span class="error" role="alert">
        {visible(error?.message ?? "")}
      </span>
    ) : null;
  const field: FormField = ({ name, label, hint, children }) => (
    <div class={wrong === name ? "field wrong" : "field"}>
      <label>
        <span>
          {label}
          {hint !== undefined && <span class="hint">{hint}</span>}
        </span>
        {children}
      </label>
      {refusal(name)}
    </div>
  );
  const number = (name: Numeric, label: string) =>
    field({
      name,
      label,
      children: (
        <input
          inputMode="decimal"
          value={form[name]}
          placeholder="as configured"
          aria-invalid={wrong === name}
          onInput={(event) => put({ [name]: event.currentTarget.value })}
        />
      ),
    });
  const body = () => {
    try {
      return JSON.stringify(requestOf(form, detail.data));
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
        otherwise="as configured"
        onValue={(name) => put({ [role]: name })}
      />
      {refusal(`agents.${role}`)}
    </div>
  );
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
              <input type="radio" name="kind" checked={form.kind === kind} onChange={() => put({ kind })} />
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
                <select value={form.difficulty} onChange={(event) => put({ difficulty: event.currentTarget.value })}>
                  {["easy", "medium", "hard"].map((name, level) => (
                    <option key={name} value={name}>
                      {name}
                      {known ? ` (${known.sizes[level] ?? ""})` : ""}
                    </option>
                  ))}
                </select>
              ),
            })}
          {form.kind === "instance" && number("index", "Instance, 0 to 199")}
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
        {form.kind === "problem" && <ProblemFields problem={form.problem} onProblem={(problem) => put({ problem })} field={field} refusal={refusal} />}
        <h2>Agents</h2>
        <div class="grid">
          {ROLES.map(agent)}
          {field({
            name: "preset",
            label: "Preset",
            children: (
              <select value={form.preset} onChange={(event) => put({ preset: event.currentTarget.value })}>
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
        <h2>Search</h2>
        <div class="grid">
          {number("fanout", "Trajectories a round")}
          {number("max_rounds", "Rounds at most")}
          {number("seed", "Seed")}
          {number("temperature", "Temperature")}
        </div>
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
