// A person's answer to a step that the verifiers scored far apart.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get, post, query } from "./api";
import type { ApiError } from "./api";
import { Assignee } from "./assignment";
import { asError, useLoad } from "./hooks";
import { Problem } from "./parts";
import { Hidden, Text, time } from "./text";
import type { FlaggedStep } from "./types";

export function Review({ run, seq, of = "" }: { run: string; seq: number; of?: string }): JSX.Element {
  const path = `/v1/runs/${encodeURIComponent(run)}/reviews`;
  const address = query(path, { after: seq - 1, limit: 1 });
  const { data, error, reload } = useLoad(address, (signal) => get<{ steps: FlaggedStep[] }>(address, signal));
  const [note, setNote] = useState("");
  const [refused, setRefused] = useState<ApiError>();
  const answer = async (verdict: "accept" | "reject") => {
    try {
      await post(path, { seq, verdict, note });
      setNote("");
      setRefused(undefined);
      reload();
    } catch (reason) {
      setRefused(asError(reason));
    }
  };
  const step = data?.steps.find((one) => one.seq === seq);
  const review = step?.review;
  return (
    <section class="review" aria-label={`Review${of}`}>
      <h3>⚑ The verifiers' scores are far apart: is this step right?</h3>
      {error && <Problem error={error} retry={reload} />}
      {step !== undefined && step.assignee !== null && (
        <p>
          <Assignee of={step} />
        </p>
      )}
      {review && (
        <p>
          {review.verdict === "accept" ? "Accepted" : "Rejected"} by <Text of={review.by} max={80} />, {time(review.at)}
          {review.note !== undefined && (
            <>
              : <Text of={review.note} />
            </>
          )}
        </p>
      )}
      <label>
        Note, for others
        <input value={note} maxLength={1000} onInput={(event) => setNote(event.currentTarget.value)} />
        <Hidden of={note} />
      </label>
      <div class="actions">
        <button onClick={() => void answer("accept")}>It is right</button>
        <button onClick={() => void answer("reject")}>It is wrong</button>
      </div>
      {refused && <Problem error={refused} />}
    </section>
  );
}
