// An agent takes one turn in the state of a step: what it is asked, what it answers, and what the others say of it.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { post } from "./api";
import type { ApiError } from "./api";
import { jsonText, numberOf } from "./exact";
import { asError } from "./hooks";
import { AgentChoice, ROLES } from "./agent_choice";
import type { Role } from "./agent_choice";
import { Copy, Problem } from "./parts";
import { asCurl, asPython } from "./snippets";
import { Hidden, Long, Text, count, words } from "./text";
import type { ModelExchange, TriedStep } from "./types";

/** Longest text of a prompt or an answer on the page. */
const TEXT_MAX = 200_000;

/** The texts of a request that were edited. */
interface Edited {
  system: string;
  prompt: string;
}

function Exchange({ exchange, name, onEdit }: { exchange: ModelExchange; name: string; onEdit?: (edited: Edited) => void }): JSX.Element {
  const { system, prompt, answer, failure, cut, usage, source } = exchange;
  return (
    <section class="exchange" aria-label={name}>
      {system !== null && (
        <details>
          <summary>System prompt</summary>
          <Text of={system} max={TEXT_MAX} block />
        </details>
      )}
      <h4>Prompt</h4>
      <Text of={prompt} max={TEXT_MAX} block />
      {onEdit !== undefined && (
        <div class="actions">
          <button onClick={() => onEdit({ system: system ?? "", prompt })}>Edit this prompt and ask again</button>
        </div>
      )}
      <h4>Raw answer</h4>
      {answer === null ? <p class="problem">None: <Text of={failure ?? ""} /></p> : <Text of={answer} max={TEXT_MAX} block />}
      <p class="muted small">
        {count(usage.prompt)} prompt and {count(usage.completion)} completion tokens{cut && ", cut at the most"}
        {source !== undefined && <>, from <Text of={source} max={80} /></>}
      </p>
    </section>
  );
}

function Result({ tried, seq, onEdit }: { tried: TriedStep; seq: number; onEdit: (edited: Edited) => void }): JSX.Element {
  const { verdict } = tried;
  return (
    <div class="tried" role="status">
      {tried.failure !== null && (
        <p class="problem">
          The turn went no further: <Text of={tried.failure} />
        </p>
      )}
      {tried.exchanges.length === 0 && <p class="muted">No model was asked: these agents answer without one.</p>}
      {tried.exchanges.map((exchange, at) => (
        <Exchange
          key={at}
          exchange={exchange}
          name={`Request ${at + 1} of ${tried.exchanges.length}`}
          {...(at === 0 && { onEdit })}
        />
      ))}
      <dl class="figures">
        {tried.derivation !== null && (
          <div>
            <dt>Derivation</dt>
            <dd><Long of={tried.derivation} max={4000} /></dd>
          </div>
        )}
        <div>
          <dt>Line</dt>
          <dd>
            <code><Long of={tried.action ?? "(no line left)"} max={4000} /></code>
            {tried.same !== null && (
              <div class="muted small">{tried.same ? "the recorded line" : `not the recorded line of event ${count(seq)}`}</div>
            )}
            {tried.refusal !== null && <div class="small"><Text of={tried.refusal} max={1000} /></div>}
          </dd>
        </div>
        {verdict !== null && (
          <div>
            <dt>Verdict</dt>
            <dd>
              V = {verdict.score}
              {verdict.violations.length > 0 && <>: <Text of={verdict.violations.join(", ")} max={1000} /></>}
              {verdict.feedback !== null && <div class="small"><Long of={verdict.feedback} max={4000} /></div>}
              {verdict.logprob !== null && <div class="muted small">p ≈ {Math.exp(verdict.logprob).toPrecision(3)}</div>}
            </dd>
          </div>
        )}
        {tried.decision !== null && (
          <div>
            <dt>Decision</dt>
            <dd>{words(tried.decision)}</dd>
          </div>
        )}
        <div>
          <dt>Executor / verifier / coordinator</dt>
          <dd><Text of={`${tried.agents.executor} / ${tried.agents.verifier} / ${tried.agents.coordinator}`} max={200} /></dd>
        </div>
      </dl>
    </div>
  );
}

/** `line` is the recorded one. A new step needs a new instance of it: give it a key. */
export function TryAgent({ run, seq, line }: { run: string; seq: number; line: string }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const [role, setRole] = useState<Role>("executor");
  const [agent, setAgent] = useState("");
  const [action, setAction] = useState(line);
  const [seed, setSeed] = useState("");
  const [edited, setEdited] = useState<Edited>();
  const [busy, setBusy] = useState(false);
  const [tried, setTried] = useState<TriedStep>();
  const [error, setError] = useState<ApiError>();
  const path = `/v1/runs/${encodeURIComponent(run)}/steps/${seq}/try`;
  const request = () => ({
    role,
    ...(agent === "" ? {} : { agent }),
    ...(role === "executor" ? (seed.trim() === "" ? {} : { seed: numberOf(seed) ?? seed }) : { action }),
    ...edited,
  });
  const ask = async () => {
    setBusy(true);
    setError(undefined);
    try {
      setTried(await post<TriedStep>(path, request()));
    } catch (reason) {
      setTried(undefined);
      setError(asError(reason));
    }
    setBusy(false);
  };
  return (
    <details class="try" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Prompt and raw answer: ask an agent here</summary>
      {isOpen && (
        <>
          <p class="muted">
            The agent takes one turn in this state, with what was rejected in it before. Prompts are not recorded: they are made
            again, and models are asked anew. The run stays as it is.
          </p>
          <form
            onSubmit={(event) => {
              event.preventDefault();
              void ask();
            }}
          >
            <div class="filters">
              <label>
                Role
                <select
                  value={role}
                  onChange={(event) => {
                    setRole(event.currentTarget.value as Role);
                    setAgent("");
                  }}
                >
                  {ROLES.map((one) => (
                    <option key={one}>{one}</option>
                  ))}
                </select>
              </label>
              <AgentChoice label="Agent" role={role} value={agent} otherwise="the run's own" onValue={setAgent} />
              {role === "executor" ? (
                <label>
                  Seed of the turn's run
                  <input size={6} inputMode="numeric" value={seed} placeholder="recorded" onInput={(event) => setSeed(event.currentTarget.value)} />
                </label>
              ) : (
                <label>
                  Line to judge
                  <input value={action} spellcheck={false} onInput={(event) => setAction(event.currentTarget.value)} />
                  <Hidden of={action} />
                </label>
              )}
              <button disabled={busy}>{busy ? "Asking…" : "Ask"}</button>
            </div>
            {edited !== undefined && (
              <div class="edited">
                <label>
                  System prompt
                  <textarea
                    rows={3}
                    spellcheck={false}
                    value={edited.system}
                    onInput={(event) => setEdited({ ...edited, system: event.currentTarget.value })}
                  />
                  <Hidden of={edited.system} />
                </label>
                <label>
                  Prompt of the first request
                  <textarea
                    rows={12}
                    spellcheck={false}
                    value={edited.prompt}
                    onInput={(event) => setEdited({ ...edited, prompt: event.currentTarget.value })}
                  />
                  <Hidden of={edited.prompt} />
                </label>
                <button type="button" onClick={() => setEdited(undefined)}>
                  Back to the agent's own prompt
                </button>
              </div>
            )}
          </form>
          <div class="actions">
            <Copy label="Copy the request as curl" text={() => asCurl("POST", path, jsonText(request()))} />
            <Copy label="Copy the request as Python" text={() => asPython("POST", path, jsonText(request()))} />
          </div>
          {error && <Problem error={error} />}
          {tried !== undefined && <Result tried={tried} seq={seq} onEdit={setEdited} />}
        </>
      )}
    </details>
  );
}
