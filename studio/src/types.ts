// What the daemon answers, as far as the page uses it; the OpenAPI document has the whole.

import type { Count } from "./exact";

export interface ErrorBody {
  error?: { message: string; code?: string; field?: string };
}

export type Status =
  | "queued"
  | "running"
  | "waiting"
  | "verified"
  | "unrefuted"
  | "unverified"
  | "failed"
  | "cancelled";

export interface Usage {
  prompt: number;
  completion: number;
  /** In the currency of the prices; left out if no model has one. */
  cost?: number;
}

export interface Ballot {
  answer: unknown;
  votes: number;
  distinct_traces: number;
  violation_score: number;
}

/** Where a search found words in a run. */
export interface Excerpt {
  part: "answer" | "input" | "line" | "instance" | "task" | "id" | "origin";
  pieces: { text: string; is_match: boolean }[];
}

export interface Run {
  id: string;
  status: Status;
  waiting_for?: string;
  resumed: number;
  created_at: string;
  updated_at: string;
  events: number;
  /** Where a run comes from that another daemon executed. */
  imported?: { run: string; node: string; program: string; at: string };
  forked_from?: { run: string; seq: number };
  retry_of?: string;
  task: string;
  instance: string;
  /** How lists name it. */
  title: string;
  answer: unknown;
  verified: boolean;
  assurance?: "verified" | "unrefuted" | "unchecked" | "violated";
  verifier: string;
  checked_kinds: string[];
  outcome: string | null;
  failure?: string;
  steps: number;
  proposals: number;
  retries: number;
  backtracks: number;
  pops: number;
  rounds: number;
  trajectories: number;
  votes: Ballot[];
  agreement: number;
  tokens: Usage;
  wall_ms: number;
  seed: Count;
  strategy: string;
  agents: { executor: string; verifier: string; coordinator: string };
  notes: string[];
  /** Those that clients gave it. */
  labels?: Record<string, string>;
  /** The engines that its agents ask, each with the SHA-256 of its model. */
  engines?: Record<string, string | null>;
  models?: string[];
  reviews?: { needed: number; open: number; rejected: number };
  approvals?: { asked: number; accepted: number; rejected: number; edited: number };
  /** In a list that was searched: where its words stand, and the lines that its constraint refused. */
  found?: { excerpts?: Excerpt[]; refused?: number };
}

/** A step that waits for approval, or waited. */
export interface Approval {
  number: number;
  state: "waiting" | "decided" | "void";
  round: number;
  trajectory: number;
  depth: number;
  action: string;
  score: number;
  otherwise: string;
  due: string;
  decision: {
    verdict: "accept" | "reject" | "edit" | "end";
    by: string;
    reason?: string;
    line?: string;
  } | null;
}

export interface Approvals {
  approvals: Approval[];
}

/** What a model has written of one turn so far. */
export interface Writing {
  round: number;
  trajectory: number;
  role: string;
  text: string;
  prompt_tokens?: number;
  prompt_read?: number;
}

/** A request to a model and its answer, as they were sent. */
export interface SentExchange {
  role: string;
  prompt: string;
  messages?: boolean;
  prompt_tokens?: number[];
  answer?: string;
  answer_tokens?: number[];
  failure?: string;
}

export interface RunList {
  runs: Run[];
  unreadable?: string[];
  next: string | null;
  incomplete?: boolean;
}

/** What runs add up to. */
export interface Figures {
  runs: number;
  open: number;
  verified: number;
  unrefuted: number;
  unverified: number;
  failed: number;
  cancelled: number;
  verified_share: number | null;
  outcomes: Record<string, number>;
  steps: number;
  proposals: number;
  refused: number;
  prompt_tokens: number;
  completion_tokens: number;
  cost?: number;
  wall_ms: number;
  runs_per_hour: number;
  steps_per_hour: number;
}

export interface NamedFigures extends Figures {
  name: string;
}

export interface Totals {
  key?: string;
  since: string;
  before: string;
  total: Figures;
  tasks: NamedFigures[];
  models: NamedFigures[];
  days: NamedFigures[];
  constraints: { task: string; constraint: string; lines: number }[];
  incomplete?: boolean;
}

export interface Column {
  from: number;
  to: number;
  depth_min: number;
  depth_max: number;
  depth_end: number;
  retries: number;
  backtracks: number;
  pops: number;
  flagged: number;
  worst: number;
  worst_at: number | null;
  violations: string[];
}

/** A part of a trajectory, from the end of the one before it. */
export interface Course {
  to: number;
  depth_max: number;
  depth_end: number;
  retries: number;
  backtracks: number;
}

export interface TrajectoryNode {
  round: number;
  trajectory: number;
  steps: number;
  depth: number;
  retries: number;
  backtracks: number;
  pops: number;
  flagged: number;
  mishaps: number;
  violations: Record<string, number>;
  first_rejected: number | null;
  last_seq: number | null;
  elapsed_ms: number;
  usage: Usage;
  end: { seq: number; end: string; answer: unknown; failure: string | null } | null;
  course: Course[];
}

export interface Tree {
  indexed: number;
  has_more: boolean;
  left_out: number;
  rounds: {
    round: number;
    vote: { seq: number; votes: number; agreement: number; winner: unknown } | null;
    trajectories: TrajectoryNode[];
  }[];
}

export interface Shape {
  has_more?: boolean;
  steps: number;
  columns: Column[];
}

export interface Step {
  seq: number;
  position: number | null;
  depth: number;
  action: string;
  cut: boolean;
  applicable: boolean;
  score: number;
  violations: string[];
  decision: "proceed" | "retry" | "backtrack";
  needs_review: boolean;
  usage: Usage;
  elapsed_ms: number;
}

export interface StepList {
  steps: Step[];
  total: number | null;
  next: number | null;
  /** True if the daemon has not read the run to its end yet: more may follow. */
  has_more?: boolean;
}

export interface StepEvent extends Step {
  round: number;
  trajectory: number;
  derivation?: string;
  reasoning?: string;
  feedback?: string;
  source?: string;
  exhausted?: boolean;
  waited_ms?: { executor: number; verifier: number; coordinator: number };
  opinions?: unknown[];
  tokens?: number[];
  logprobs?: number[];
}

export interface StepDetail {
  seq: number;
  position: number;
  total: number;
  explanation: string;
  then: { text: string; seq: number | null; position: number | null };
  step: StepEvent;
  broken: { name: string; kind: string | null; weight: number; meaning: string }[];
  before: unknown;
  after: unknown;
  view: string | null;
  stack: { seq: number; depth: number; action: string }[];
  previous_elapsed_ms: number;
  pops: number;
  judge: { verifier: string; version: string; models?: Record<string, string | null> } | null;
  basis: { kinds: string[]; evaluated: string[]; methods: string[] } | null;
}

export interface Comparison {
  has_more: boolean;
  trajectories: {
    round: number;
    trajectory: number;
    steps_a: number;
    steps_b: number;
    same: number;
    seq_a: number | null;
    seq_b: number | null;
  }[];
}

export interface Task {
  slug: string;
  title: string;
  category: string;
  sizes: string[];
  actions: string[];
  constraints: { name: string; kind: string; weight: number; meaning: string }[];
  /** Why the program of an own task cannot be asked, if it cannot. */
  unavailable?: string;
}

export interface Described {
  name: string;
  meaning: string;
}

export interface TaskDetail extends Task {
  problem: string;
  algorithm: string;
  step: string;
  instances: string;
  note: string;
  input: Described[];
  answer: Described[];
  state: Described[];
  lines: { line: string; effect: string; example: string }[];
  example: {
    input: Record<string, unknown>;
    start: unknown;
    steps: { line: string; state: unknown }[];
    steps_total: number;
    answer: unknown;
  };
}

export interface Agent {
  role: string;
  name: string;
  implementation: string;
  description: string;
  default: boolean;
  allowed: boolean;
  models: string[];
  /** Why it cannot run now, if a request may choose it. */
  refusal: string | null;
  options: Record<string, unknown>;
}

export interface Cluster {
  shared: boolean;
  nodes: {
    name: string;
    version: string;
    this: boolean;
    capacity: number;
    held: number;
    age_ms: number;
    lease_left_ms: number | null;
  }[];
  open_runs: number;
  waiting_runs: number;
  oldest_waiting_ms: number | null;
}

export interface ReportList {
  configured: boolean;
  reports: { path: string; bytes: number; modified_ms: number }[];
  has_more: boolean;
}

export interface ModelExchange {
  system: string | null;
  prompt: string;
  answer: string | null;
  failure?: string;
  cut: boolean;
  usage: Usage;
  source?: string;
}

export interface TriedStep {
  agents: Run["agents"];
  exchanges: ModelExchange[];
  derivation: string | null;
  action: string | null;
  same: boolean | null;
  refusal: string | null;
  verdict: { score: number; violations: string[]; feedback: string | null; logprob: number | null } | null;
  decision: string | null;
  failure: string | null;
}

export interface FlaggedStep {
  seq: number;
  round: number;
  trajectory: number;
  action: string;
  review: { verdict: string; note?: string; by: string; at: string } | null;
  /** Who is to review it; null if it is nobody in particular. */
  assignee: string | null;
}
