// A choice among the agents of a role that a request may name.

import type { JSX } from "preact";
import { get, query } from "./api";
import { useLoad } from "./hooks";
import { Text, some, visible } from "./text";
import type { Agent } from "./types";

export const ROLES = ["executor", "verifier", "coordinator"] as const;
export type Role = (typeof ROLES)[number];

interface AgentList {
  agents: Agent[];
}

/** Choices that appear together ask once. */
const SHARED_MS = 5000;
let shared: { path: string; at: number; list: Promise<AgentList> } | undefined;

function loadAgents(path: string): Promise<AgentList> {
  const now = performance.now();
  if (shared === undefined || shared.path !== path || now - shared.at > SHARED_MS) {
    const asked = { path, at: now, list: get<AgentList>(path) };
    asked.list.catch(() => {
      // A failure is not kept.
      if (shared === asked) shared = undefined;
    });
    shared = asked;
  }
  return shared.list;
}

/** Models that are named before the others are counted. */
const MODELS_MAX = 2;

/** An agent's name, with the models that it asks. */
function described({ name, models }: Agent): string {
  const shown = models.slice(0, MODELS_MAX).map((model) => visible(model, 60));
  const more = models.length - shown.length;
  if (more > 0) shown.push(some(more, "other model"));
  return shown.length === 0 ? visible(name, 80) : `${visible(name, 80)} (${shown.join(", ")})`;
}

/** Agents of the role that a request cannot choose now, and why. */
function NotOffered({ role, known }: { role: Role; known: Agent[] }): JSX.Element | null {
  const refused = known.filter(({ allowed, refusal }) => allowed && refusal !== null);
  const unlisted = known.filter(({ allowed }) => !allowed);
  if (refused.length + unlisted.length === 0) return null;
  return (
    <details class="small">
      <summary>{some(refused.length + unlisted.length, "other")} cannot be chosen</summary>
      <ul>
        {refused.map(({ name, refusal }) => (
          <li key={name}>
            <Text of={name} max={80} />: <Text of={refusal ?? ""} max={400} />
          </li>
        ))}
        {unlisted.length > 0 && (
          <li>
            <code>server.allow_{role}s</code> does not list{" "}
            {unlisted.map(({ name }) => visible(name, 80)).join(", ")}
          </li>
        )}
      </ul>
    </details>
  );
}

/**
 * `otherwise` is what no choice means; its value is the empty one. Where it is missing, that is the
 * configured agent.
 */
export function AgentChoice(props: {
  label: string;
  role: Role;
  value: string;
  /** The task to solve: the models are those that are asked about it. */
  task?: string;
  otherwise?: string;
  /** True to say which agents are not offered, and why. */
  explained?: boolean;
  onValue: (value: string) => void;
}): JSX.Element {
  const path = query("/v1/agents", { task: props.task });
  const { data } = useLoad(path, () => loadAgents(path));
  const known = data?.agents.filter(({ role }) => role === props.role) ?? [];
  const configured = known.find((agent) => agent.default);
  const otherwise =
    configured === undefined ? "as configured" : `${described(configured)}, as configured`;
  // The configured one is the first choice already.
  const hasDefault = props.otherwise === undefined;
  const offered = known.filter(
    (agent) => agent.allowed && agent.refusal === null && !(hasDefault && agent.default),
  );
  const isConfigured = hasDefault && props.value === configured?.name;
  const isOffered =
    isConfigured || props.value === "" || offered.some(({ name }) => name === props.value);
  return (
    <>
      <label>
        <span>{props.label}</span>
        <select
          value={isConfigured ? "" : props.value}
          onChange={(event) => props.onValue(event.currentTarget.value)}
        >
          <option value="">{props.otherwise ?? otherwise}</option>
          {offered.map((agent) => (
            <option key={agent.name} value={agent.name}>
              {described(agent)}
            </option>
          ))}
          {!isOffered && data !== undefined && (
            <option value={props.value}>{visible(props.value, 80)}, which cannot be chosen</option>
          )}
        </select>
      </label>
      {props.explained === true && <NotOffered role={props.role} known={known} />}
    </>
  );
}
