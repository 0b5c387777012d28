// What models write while they write it, and what they were sent, word for word.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get } from "./api";
import { useLoad } from "./hooks";
import { Panel, Problem, Skeleton } from "./parts";
import { Text, count } from "./text";
import type { SentExchange, Writing } from "./types";

/** Longest text of a prompt or an answer on the page. */
const TEXT_MAX = 200_000;

/** The turns that models write at this moment. */
export function WritingNow({ turns }: { turns: Writing[] }): JSX.Element | null {
  if (turns.length === 0) return null;
  return (
    <Panel title="Being written" class="writing">
      <ul>
        {turns.map((turn) => (
          <li key={`${turn.round}.${turn.trajectory}`}>
            <span class="muted small">
              {turn.role} of {turn.round}.{turn.trajectory}
            </span>{" "}
            {turn.text === "" && turn.prompt_tokens !== undefined ? (
              <span class="muted">
                reading the prompt: {count(turn.prompt_read ?? 0)} of {count(turn.prompt_tokens)} tokens
              </span>
            ) : (
              <code class="draft">
                <Text of={turn.text} max={2000} />
              </code>
            )}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Exchange({ of, at }: { of: SentExchange; at: number }): JSX.Element {
  const tokens = (ids: number[] | undefined) => (ids === undefined ? "" : `, ${count(ids.length)} tokens`);
  return (
    <section class="exchange" aria-label={`Request ${at + 1}`}>
      <h4>
        {of.messages ? "Messages" : "What the model read"} ({of.role}
        {tokens(of.prompt_tokens)})
      </h4>
      <Text of={of.prompt} max={TEXT_MAX} block />
      <h4>What it wrote{tokens(of.answer_tokens)}</h4>
      <Text of={of.answer ?? of.failure ?? ""} max={TEXT_MAX} block />
    </section>
  );
}

function Exchanges({ path }: { path: string }): JSX.Element {
  const { data, error, reload } = useLoad(path, (signal) => get<{ exchanges: SentExchange[] }>(path, signal));
  if (error) return <Problem error={error} retry={reload} />;
  if (data === undefined) return <Skeleton />;
  if (data.exchanges.length === 0) {
    return <p class="muted">Not kept: no model was asked, or `journal.prompts` was `none`.</p>;
  }
  return (
    <>
      {data.exchanges.map((exchange, at) => (
        <Exchange key={at} of={exchange} at={at} />
      ))}
    </>
  );
}

/** What a step's models were sent and answered; looked up when it is opened. */
export function SentToModels({ run, seq }: { run: string; seq: number }): JSX.Element {
  const [open, setOpen] = useState(false);
  return (
    <details class="sent" onToggle={(event) => setOpen((event.currentTarget as HTMLDetailsElement).open)}>
      <summary>Exact prompt and answer</summary>
      {open && <Exchanges path={`/v1/runs/${encodeURIComponent(run)}/steps/${seq}/exchanges`} />}
    </details>
  );
}
