// Reviews as preference pairs: a file for training, and how many rejected steps are not in it.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { getBlob, query } from "./api";
import { asError } from "./hooks";
import { saveFile } from "./parts";
import { some, visible } from "./text";

const REASONS: Record<string, string> = {
  no_better_line: "no better line was proposed in the same state",
  repeated: "another step gives the same pair",
  own_task: "the task is not the benchmark's",
  too_long: "the run has more than 200,000 events",
  unreadable: "the run cannot be replayed",
};

/** The lines of pairs, and the others counted by their reasons. */
export function sorted(text: string): { pairs: string[]; leftOut: Map<string, number> } {
  const pairs: string[] = [];
  const leftOut = new Map<string, number>();
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const why = (JSON.parse(line) as { left_out?: string }).left_out;
    if (why === undefined) pairs.push(line);
    else leftOut.set(why, (leftOut.get(why) ?? 0) + 1);
  }
  return { pairs, leftOut };
}

export function SavePairs({ run }: { run: string | null }): JSX.Element {
  const [message, setMessage] = useState("");
  const save = async () => {
    setMessage("Preparing…");
    try {
      const blob = await getBlob(query("/v1/reviews/pairs", { run, left_out: true }));
      const { pairs, leftOut } = sorted(await blob.text());
      const reasons = [...leftOut].map(
        ([why, steps]) => `${some(steps, "rejected step")} left out: ${REASONS[why] ?? why}`,
      );
      if (pairs.length > 0) {
        const content = pairs.map((line) => `${line}\n`).join("");
        saveFile(`${run ?? "reviews"}-pairs.jsonl`, new Blob([content]));
      }
      setMessage([some(pairs.length, "pair"), ...reasons].join("; "));
    } catch (error) {
      setMessage(asError(error).message);
    }
  };
  return (
    <>
      <button
        title="What reviewers rejected, with a better line: JSON Lines for preference training"
        onClick={() => void save()}
      >
        Save as preference pairs
      </button>
      <span class="muted small" role="status">
        {visible(message, 400)}
      </span>
    </>
  );
}
