// What the form for a new run has, the request that it makes, and the form of a run that is made
// again.

import { ROLES } from "./agent_choice";
import { jsonText, numberOf, parseJson } from "./exact";
import type { Count } from "./exact";
import { EXAMPLE, definitionOf, problemOf } from "./input_form";
import type { ProblemForm } from "./input_form";
import { labelLines, readLabels } from "./labels";
import { agentsOf, instanceOf } from "./spec";
import type { Spec } from "./spec";
import type { Agent, TaskDetail } from "./types";

type Kind = "instance" | "input" | "problem";

export interface Form {
  kind: Kind;
  task: string;
  difficulty: string;
  index: string;
  /** The seed of generated instances; empty for those of the benchmark. */
  base_seed: string;
  /**
   * The text of each field of the input that was changed; the others are those of the task's
   * example.
   */
  input: Record<string, string>;
  problem: ProblemForm;
  preset: string;
  executor: string;
  verifier: string;
  coordinator: string;
  strategy: string;
  vote: string;
  speculate: "" | "true" | "false";
  force: boolean;
  fanout: string;
  max_rounds: string;
  seed: string;
  temperature: string;
  top_p: string;
  approve: string;
  approve_within_ms: string;
  approve_else: string;
  steps: string;
  tokens: string;
  completion_tokens: string;
  cost: string;
  wall_ms: string;
  /** One a line. */
  labels: string;
}

export const START: Form = {
  kind: "instance",
  task: "bubble-sort",
  difficulty: "easy",
  index: "0",
  base_seed: "",
  input: {},
  problem: EXAMPLE,
  preset: "",
  executor: "",
  verifier: "",
  coordinator: "",
  strategy: "",
  vote: "",
  speculate: "",
  force: false,
  fanout: "",
  max_rounds: "",
  seed: "",
  temperature: "",
  top_p: "",
  approve: "",
  approve_within_ms: "",
  approve_else: "",
  steps: "",
  tokens: "",
  completion_tokens: "",
  cost: "",
  wall_ms: "",
  labels: "",
};

export const STRATEGIES = ["iterative", "greedy", "best_of_n", "beam", "ahead", "particle_filter", "uct"];
export const VOTES = ["majority", "tolerance", "weighted"];
export const LIMITS = ["steps", "tokens", "completion_tokens", "cost", "wall_ms"] as const;
export type Limit = (typeof LIMITS)[number];
export const LIMIT_LABELS: Record<Limit, string> = {
  steps: "Maximum proposals",
  tokens: "Maximum tokens",
  completion_tokens: "Maximum completion tokens",
  cost: "Maximum cost",
  wall_ms: "Maximum run time, in ms",
};
export const SEARCH = ["fanout", "max_rounds", "seed", "temperature", "top_p"] as const;

export const APPROVE_ELSE = ["reject", "accept", "end"];

export type Numeric = "index" | "base_seed" | "approve_within_ms" | (typeof SEARCH)[number] | (typeof LIMITS)[number];

export class BadForm extends Error {
  constructor(
    readonly field: string,
    message: string,
  ) {
    super(message);
  }
}

/** Reads the JSON of a field, each number as it is written. */
function json(field: string, text: string): unknown {
  try {
    return parseJson(text, true);
  } catch (error) {
    throw new BadForm(field, `This is not JSON: ${String(error).replace(/^SyntaxError: /, "")}`);
  }
}

/** The numbers of the fields that are filled in, exactly; `within` is where the daemon has them. */
function numbers(form: Form, fields: readonly Numeric[], within = ""): Record<string, Count> {
  const given = fields.filter((field) => form[field].trim() !== "");
  return Object.fromEntries(
    given.map((field) => {
      const value = numberOf(form[field]);
      if (value === undefined) throw new BadForm(`${within}${field}`, "Give a number.");
      return [field, value];
    }),
  );
}

/** The form that asks for the same as a run was accepted with. */
export function formOf(spec: Spec, present: Agent[]): Partial<Form> {
  const instance = instanceOf(spec);
  const fields = Object.entries(spec.input).map(
    ([name, value]) => [name, jsonText(value)] as const,
  );
  const own = { kind: "input", task: spec.task, input: Object.fromEntries(fields) } as const;
  const what: Partial<Form> =
    spec.task === "problem"
      ? { kind: "problem", problem: problemOf(spec.input) }
      : instance === undefined
        ? own
        : { ...own, kind: "instance", ...instance };
  const { plan, sampling } = spec;
  // A budget of 0 is none. What a problem limits itself is in the problem.
  const own_steps = spec.task === "problem" ? String(spec.input["max_proposals"]) : "";
  const limits = LIMITS.map((name) => {
    const limit = String(plan.budget[name] ?? 0);
    return [name, limit === "0" || (name === "steps" && limit === own_steps) ? "" : limit];
  });
  return {
    ...what,
    ...agentsOf(spec, present),
    ...(Object.fromEntries(limits) as Pick<Form, (typeof LIMITS)[number]>),
    strategy: plan.strategy,
    vote: plan.vote,
    speculate: plan.speculate ? "true" : "false",
    fanout: String(plan.fanout),
    max_rounds: String(plan.max_rounds),
    seed: String(sampling.seed),
    temperature: String(sampling.temperature),
    top_p: String(sampling.top_p),
    ...(spec.approval === undefined
      ? {}
      : {
          approve: spec.approval.rule,
          approve_within_ms: String(spec.approval.within_ms),
          approve_else: spec.approval.otherwise,
        }),
    labels: labelLines(spec.labels ?? {}),
  };
}

export function requestOf(form: Form, task: TaskDetail | undefined): Record<string, unknown> {
  const agents = Object.fromEntries(
    ROLES.filter((role) => form[role] !== "").map((role) => [role, form[role]]),
  );
  const input = () => {
    const given = Object.entries(form.input).map(
      ([name, text]) => [name, json(`input.${name}`, text)] as const,
    );
    return { ...task?.example.input, ...Object.fromEntries(given) };
  };
  const what = {
    instance: () => ({
      task: form.task,
      difficulty: form.difficulty,
      ...numbers(form, ["index", "base_seed"]),
    }),
    input: () => ({ task: form.task, input: input() }),
    problem: () => ({ problem: definitionOf(form.problem, json) }),
  }[form.kind]();
  const budget = numbers(form, LIMITS, "budget.");
  const labels = readLabels(form.labels);
  return {
    ...what,
    ...(form.preset === "" ? {} : { preset: form.preset }),
    ...(form.strategy === "" ? {} : { strategy: form.strategy }),
    ...(form.vote === "" ? {} : { vote: form.vote }),
    ...(form.speculate === "" ? {} : { speculate: form.speculate === "true" }),
    ...(form.force ? { force: true } : {}),
    ...numbers(form, SEARCH),
    ...(form.approve.trim() === "" ? {} : { approve: form.approve.trim() }),
    ...numbers(form, ["approve_within_ms"]),
    ...(form.approve_else === "" ? {} : { approve_else: form.approve_else }),
    ...(Object.keys(budget).length === 0 ? {} : { budget }),
    ...(Object.keys(agents).length === 0 ? {} : { agents }),
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
  };
}
