// What two runs differ in, as a person would say it: one change of an agent is one difference,
// though many recorded fields follow from it.

import { jsonText } from "./exact";
import type { Difference, Spec } from "./spec";
import { visible, words } from "./text";

const ROLES = ["executor", "verifier", "coordinator"];

function shown(value: unknown): string {
  if (value === undefined || value === null) return "none";
  return visible(typeof value === "string" ? value : jsonText(value), 60);
}

function change({ a, b }: Difference): string {
  return `${shown(b)} instead of ${shown(a)}`;
}

/** Which change a field belongs to: a role whose agent it records, or the field itself. */
function belongsTo(path: string, roles: ReadonlySet<string>): string {
  const [first = "", second = ""] = path.split(".");
  if (first === "agents" || (first === "recorded" && ROLES.includes(second))) return second;
  if (path.startsWith("plan.basis") || path === "plan.locates")
    return roles.has("verifier") ? "verifier" : "plan.basis";
  // Files that agents use: those of any agent that is another one.
  if (first === "recorded") return [...roles][0] ?? `recorded.${second}`;
  if (first === "task" || first === "instance" || first === "input") return "input";
  if (first === "plan" && second === "learnt") return "plan.learnt";
  if (first === "forked_from") return first;
  return path;
}

/** In words, which run the second one begins with. */
function forked(found: Difference[]): string {
  const of = (name: string) => found.find(({ path }) => path === `forked_from.${name}`)?.b;
  const whole = found.find(({ path }) => path === "forked_from")?.b as
    | { run?: unknown; seq?: unknown }
    | undefined;
  const [run, seq] = [whole?.run ?? of("run"), whole?.seq ?? of("seq")];
  if (run === undefined && seq === undefined) return "no beginning of another run";
  const events = seq === undefined ? "" : `, up to event ${shown(seq)}`;
  return `the beginning of ${run === undefined ? "the same run" : shown(run)}${events}`;
}

function saidOf(key: string, found: Difference[]): string {
  const at = (path: string) => found.find((one) => one.path === path);
  if (ROLES.includes(key)) {
    const name = at(`agents.${key}`);
    return name === undefined
      ? `other options or files of the ${key}`
      : `another ${key}: ${change(name)}`;
  }
  const [task, instance] = [at("task"), at("instance")];
  switch (key) {
    case "input":
      if (task !== undefined) return `another task: ${change(task)}`;
      return instance === undefined ? "another input" : `another instance: ${change(instance)}`;
    case "sampling.seed":
      return `another seed${found[0] === undefined ? "" : `: ${change(found[0])}`}`;
    case "forked_from":
      return forked(found);
    case "retry_of":
      return `another origin: ${shown(found[0]?.b)} is tried again`;
    case "plan.basis":
      return "verdicts that rest on other checks";
    case "plan.learnt":
      return "other lines that are ruled out from the start";
    case "recorded.engines":
      return "another file of a model";
    case "recorded.templates":
      return "other prompt templates";
    default: {
      const name = words(visible(key.replace(/^(plan|sampling)\./, "").replaceAll(".", " "), 80));
      const [only] = found;
      return only === undefined || found.length > 1 ? `other ${name}` : `${name}: ${change(only)}`;
    }
  }
}

/** True if agents of the run ask models. */
function hasModels({ recorded }: Spec): boolean {
  const { engines, pools } = (recorded ?? {}) as Record<string, object | undefined>;
  return Object.keys({ ...engines, ...pools }).length > 0;
}

/**
 * The differences of two runs by their causes, in words without direction characters, in the order
 * in which they are found; `second` is what the second run was accepted with.
 */
export function causes(found: Difference[], second: Spec): string[] {
  const roles = new Set(
    found.flatMap(({ path }) => {
      const [first, role = ""] = path.split(".");
      const isAgent = first === "agents" || first === "recorded";
      return isAgent && ROLES.includes(role) ? [role] : [];
    }),
  );
  const groups = new Map<string, Difference[]>();
  for (const one of found) {
    const key = belongsTo(one.path, roles);
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  // Another executor is often wanted for another model.
  const areSame = !found.some((one) => /^recorded\.(engines|pools)(\.|$)/.test(one.path));
  return [...groups].map(([key, of]) => {
    const same = key === "executor" && areSame && hasModels(second) ? ", with the same models" : "";
    return `${saidOf(key, of)}${same}`;
  });
}
