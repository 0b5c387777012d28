// A choice among the agents of a role that a request may name.

import type { JSX } from "preact";
import { get } from "./api";
import { useLoad } from "./hooks";
import { visible } from "./text";
import type { Agent } from "./types";

export const ROLES = ["executor", "verifier", "coordinator"] as const;
export type Role = (typeof ROLES)[number];

interface AgentList {
  agents: Agent[];
}

/** Choices that appear together ask once. */
const SHARED_MS = 5000;
let shared: { at: number; list: Promise<AgentList> } | undefined;

function loadAgents(): Promise<AgentList> {
  const now = performance.now();
  if (shared === undefined || now - shared.at > SHARED_MS) {
    const asked = { at: now, list: get<AgentList>("/v1/agents") };
    asked.list.catch(() => {
      // A failure is not kept.
      if (shared === asked) shared = undefined;
    });
    shared = asked;
  }
  return shared.list;
}

/**
 * `otherwise` is what no choice means; its value is the empty one. Where it is missing, that is the
 * configured agent.
 */
export function AgentChoice(props: {
  label: string;
  role: Role;
  value: string;
  otherwise?: string;
  onValue: (value: string) => void;
}): JSX.Element {
  const { data } = useLoad("agents", loadAgents);
  const known = data?.agents.filter(({ role }) => role === props.role) ?? [];
  const configured = known.find((agent) => agent.default);
  const named = configured === undefined ? "" : ` (${visible(configured.name, 80)})`;
  return (
    <label>
      <span>{props.label}</span>
      <select value={props.value} onChange={(event) => props.onValue(event.currentTarget.value)}>
        <option value="">{props.otherwise ?? `as configured${named}`}</option>
        {known
          .filter(({ allowed }) => allowed)
          .map(({ name }) => (
            <option key={name} value={name}>
              {visible(name, 80)}
            </option>
          ))}
      </select>
    </label>
  );
}
