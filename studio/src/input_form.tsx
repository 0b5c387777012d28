// The parts of the form for a new run that say what to solve: an input of a task, field by field, or a problem of one's own.

import type { ComponentChildren, JSX } from "preact";
import { jsonText } from "./exact";
import { Quoted, visible } from "./text";
import type { TaskDetail } from "./types";

/** What the daemon or the form refuses about a field; nothing where it refuses nothing. */
export type Refusal = (name: string) => ComponentChildren;
export type FormField = (props: {
  name: string;
  label: ComponentChildren;
  hint?: ComponentChildren;
  /** What is in the field, to say what cannot be seen in it. */
  text?: string;
  children: ComponentChildren;
}) => JSX.Element;

interface ConstraintForm {
  name: string;
  severity: string;
  /** True if `text` is an expression that is evaluated, false for words that a verifier reads. */
  kind: "check" | "text";
  text: string;
  /** What the model is told when a check fails; undefined where that is the check. */
  message?: string;
}

export interface ProblemForm {
  statement: string;
  input: string;
  /** `one line`, or `one step a line`. */
  steps: "single" | "stepwise";
  answerKind: "any" | "pattern" | "schema";
  answer: string;
  constraints: ConstraintForm[];
  /** What the form does not edit, such as `max_steps`: it is sent as it was read. */
  rest: Record<string, unknown>;
}

export const EXAMPLE: ProblemForm = {
  statement: "Give three different numbers from `of` that add up to `sum`.",
  input: '{"of": [3, 5, 8, 13], "sum": 21}',
  steps: "single",
  answerKind: "schema",
  answer: '{"type": "array", "items": {"type": "integer"}, "minItems": 3, "maxItems": 3}',
  constraints: [{ name: "sum", severity: "critical", kind: "check", text: "answer[0] + answer[1] + answer[2] == input.sum" }],
  rest: {},
};

type ReadJson = (field: string, text: string) => unknown;

/** The problem as the API takes it. */
export function definitionOf(problem: ProblemForm, json: ReadJson): Record<string, unknown> {
  const answer = {
    any: () => ({}),
    pattern: () => ({ answer: { pattern: problem.answer } }),
    schema: () => ({ answer: { schema: json("problem.answer", problem.answer) } }),
  }[problem.answerKind]();
  return {
    ...problem.rest,
    statement: problem.statement,
    ...(problem.input.trim() === "" ? {} : { input: json("problem.input", problem.input) }),
    steps: problem.steps,
    ...answer,
    constraints: problem.constraints.map(({ name, severity, kind, text, message }) => ({ name, severity, [kind]: text, message })),
  };
}

/** The form of a problem as a run was accepted with it. */
export function problemOf(definition: Record<string, unknown>): ProblemForm {
  const given = definition as {
    statement?: string;
    input?: unknown;
    steps?: "single" | "stepwise";
    answer?: { pattern?: string; schema?: unknown };
    constraints?: { name: string; severity: string; check?: string | null; text?: string | null; message?: string | null }[];
  };
  const edited = new Set(["statement", "input", "steps", "answer", "constraints"]);
  const kept = Object.entries(definition).filter(([name, value]) => !edited.has(name) && value !== null);
  const { pattern, schema } = given.answer ?? {};
  return {
    statement: given.statement ?? "",
    input: given.input == null ? "" : jsonText(given.input),
    steps: given.steps ?? "single",
    answerKind: pattern !== undefined ? "pattern" : schema !== undefined ? "schema" : "any",
    answer: pattern ?? (schema === undefined ? "" : jsonText(schema)),
    constraints: (given.constraints ?? []).map(({ name, severity, check, text, message }) => ({
      name,
      severity,
      kind: check == null ? "text" : "check",
      text: check ?? text ?? "",
      ...(message == null ? {} : { message }),
    })),
    rest: Object.fromEntries(kept),
  };
}

function rows(text: string, most: number): number {
  return Math.max(1, Math.min(most, Math.ceil(text.length / 90), 1 + text.split("\n").length));
}

export function InputFields(props: {
  task: TaskDetail | undefined;
  input: Record<string, string>;
  onInput: (name: string, text: string) => void;
  field: FormField;
  refusal: Refusal;
}): JSX.Element {
  const { task, input, onInput, field, refusal } = props;
  if (task === undefined) return <p class="muted">Name a task above: its fields follow here.</p>;
  const meanings = new Map(task.input.map(({ name, meaning }) => [name, meaning]));
  const example = task.example.input;
  const names = [...new Set([...Object.keys(example), ...meanings.keys(), ...Object.keys(input)])];
  return (
    <fieldset class="own">
      <legend>Input, as JSON</legend>
      {names.map((name) => {
        const text = input[name] ?? (example[name] === undefined ? "" : jsonText(example[name]));
        const meaning = meanings.get(name);
        return field({
          name: `input.${name}`,
          label: <code>{visible(name, 80)}</code>,
          hint: meaning === undefined ? undefined : <Quoted text={meaning} />,
          text,
          children: (
            <textarea rows={rows(text, 8)} spellcheck={false} value={text} onInput={(event) => onInput(name, event.currentTarget.value)} />
          ),
        });
      })}
      {refusal("input")}
    </fieldset>
  );
}

export function ProblemFields(props: {
  problem: ProblemForm;
  onProblem: (problem: ProblemForm) => void;
  field: FormField;
  refusal: Refusal;
}): JSX.Element {
  const { problem, onProblem, field, refusal } = props;
  const put = (change: Partial<ProblemForm>) => onProblem({ ...problem, ...change });
  const constrain = (at: number, change: Partial<ConstraintForm>) =>
    put({ constraints: problem.constraints.map((one, index) => (index === at ? { ...one, ...change } : one)) });
  return (
    <>
      {field({
        name: "problem.statement",
        label: "Statement",
        hint: "what is asked, in words",
        text: problem.statement,
        children: <textarea rows={3} value={problem.statement} onInput={(event) => put({ statement: event.currentTarget.value })} />,
      })}
      {field({
        name: "problem.input",
        label: "Data (JSON)",
        hint: "what the statement speaks of; checks read it as `input`",
        text: problem.input,
        children: (
          <textarea rows={rows(problem.input, 8)} spellcheck={false} value={problem.input} onInput={(event) => put({ input: event.currentTarget.value })} />
        ),
      })}
      <div class="grid">
        {field({
          name: "problem.steps",
          label: "Solved",
          children: (
            <select value={problem.steps} onChange={(event) => put({ steps: event.currentTarget.value as ProblemForm["steps"] })}>
              <option value="single">in one line, the answer</option>
              <option value="stepwise">step by step, a line each</option>
            </select>
          ),
        })}
        {field({
          name: "problem.answer_kind",
          label: "The answer is",
          children: (
            <select value={problem.answerKind} onChange={(event) => put({ answerKind: event.currentTarget.value as ProblemForm["answerKind"] })}>
              <option value="any">any text</option>
              <option value="pattern">text of a pattern</option>
              <option value="schema">JSON of a schema</option>
            </select>
          ),
        })}
      </div>
      {problem.answerKind !== "any" &&
        field({
          name: "problem.answer",
          label: problem.answerKind === "pattern" ? "Pattern (regular expression)" : "JSON Schema",
          text: problem.answer,
          children: (
            <textarea rows={rows(problem.answer, 8)} spellcheck={false} value={problem.answer} onInput={(event) => put({ answer: event.currentTarget.value })} />
          ),
        })}
      {Object.keys(problem.rest).length > 0 && (
        <p class="muted">
          Kept as they were: <code>{visible(jsonText(problem.rest), 400)}</code>
        </p>
      )}
      <fieldset class="own">
        <legend>Constraints</legend>
        {problem.constraints.map((constraint, at) => (
          <div key={at} class="constraint">
            <input aria-label={`Name of constraint ${at + 1}`} value={constraint.name} onInput={(event) => constrain(at, { name: event.currentTarget.value })} />
            <select aria-label={`Severity of constraint ${at + 1}`} value={constraint.severity} onChange={(event) => constrain(at, { severity: event.currentTarget.value })}>
              {["critical", "major", "minor"].map((severity) => (
                <option key={severity}>{severity}</option>
              ))}
            </select>
            <select
              aria-label={`Kind of constraint ${at + 1}`}
              value={constraint.kind}
              onChange={(event) => constrain(at, { kind: event.currentTarget.value as ConstraintForm["kind"] })}
            >
              <option value="check">evaluated (CEL)</option>
              <option value="text">in words</option>
            </select>
            <button type="button" aria-label={`Remove constraint ${at + 1}`} onClick={() => put({ constraints: problem.constraints.filter((_, index) => index !== at) })}>
              ✗
            </button>
            {field({
              name: `problem.constraints[${at}]`,
              label: <span class="hidden">Constraint {at + 1}</span>,
              text: `${constraint.name} ${constraint.text}`,
              children: <textarea rows={rows(constraint.text, 4)} spellcheck={false} value={constraint.text} onInput={(event) => constrain(at, { text: event.currentTarget.value })} />,
            })}
          </div>
        ))}
        <button type="button" onClick={() => put({ constraints: [...problem.constraints, { name: "", severity: "major", kind: "check", text: "" }] })}>
          Add a constraint
        </button>
        {refusal("problem.constraints")}
      </fieldset>
      {refusal("problem")}
    </>
  );
}
