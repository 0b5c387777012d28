// What a run was accepted with, the request that asks for the same again, and in what two of them
// differ.

import { Exact, sameJson } from "./exact";
import type { Count } from "./exact";
import type { Agent } from "./types";

type Role = "executor" | "verifier" | "coordinator";

export interface Spec {
  task: string;
  instance: string;
  input: Record<string, unknown>;
  plan: {
    strategy: string;
    vote: string;
    speculate: boolean;
    fanout: Count;
    max_rounds: Count;
    confidence: Count;
    budget: { steps: Count; tokens: Count; completion_tokens: Count; cost?: Count; wall_ms: Count };
  };
  sampling: { temperature: Count; top_p: Count; seed: Count };
  approval?: { rule: string; within_ms: Count; otherwise: string };
  overrides: Partial<Record<Role, string | null>>;
  agents: Record<Role, string>;
  recorded?: unknown;
  /** Those of its acceptance. */
  labels?: Record<string, string>;
  config_hash: string;
}

/** An instance of the benchmark by its name, as `bubble-sort/hard/000@7`, whose base seed is 7. */
export function instanceOf(
  spec: Spec,
): { difficulty: string; index: string; base_seed: string } | undefined {
  const match = /^([^/]+)\/(easy|medium|hard)\/(\d+)(?:@(\d+))?$/.exec(spec.instance);
  if (match === null || match[1] !== spec.task) return undefined;
  const [, , difficulty = "", index = "", base_seed = ""] = match;
  return { difficulty, index: index.replace(/^0+(?=\d)/, ""), base_seed };
}

/**
 * The agents to ask for by name: those that the run asked for, and those that are not the
 * configured ones now.
 */
export function agentsOf(spec: Spec, present: Agent[]): Record<Role, string> {
  const name = (role: Role) => {
    const configured = present.find((agent) => agent.role === role && agent.default)?.name;
    const chosen = spec.overrides[role];
    return chosen ?? (configured === spec.agents[role] ? "" : spec.agents[role]);
  };
  return {
    executor: name("executor"),
    verifier: name("verifier"),
    coordinator: name("coordinator"),
  };
}

export interface Difference {
  path: string;
  a: unknown;
  b: unknown;
}

function isFields(value: unknown): value is Record<string, unknown> {
  return (
    value !== null &&
    typeof value === "object" &&
    !Array.isArray(value) &&
    !(value instanceof Exact)
  );
}

function compared(a: unknown, b: unknown, path: string[]): Difference[] {
  if (sameJson(a, b)) return [];
  if (!isFields(a) || !isFields(b)) return [{ path: path.join("."), a, b }];
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  return names.flatMap((name) => compared(a[name], b[name], [...path, name]));
}

/** Fields that say how a run came to be rather than what it is. */
const ASIDE = new Set(["notes", "overrides", "config_hash", "labels", "origin"]);

/** Where two runs have other inputs or settings. */
export function differences(a: Spec, b: Spec): Difference[] {
  const rest = (spec: Spec) =>
    Object.fromEntries(Object.entries(spec).filter(([name]) => !ASIDE.has(name)));
  return compared(rest(a), rest(b), []);
}
