// What needs no browser: JSON without the loss of a digit, and the alignment of two runs.

import { expect, test } from "@playwright/test";
import { aligned } from "../src/alignment.ts";
import { jsonText, numberOf, parseJson, prettyJson } from "../src/exact.ts";
import type { Step } from "../src/types.ts";

test("JSON keeps every digit", () => {
  // On both sides of 2^53, and of what a fraction keeps.
  const text =
    '{"a":[9007199254740991,9007199254740993,-99999999999999999,0.1,0.30000000000000004,1e400],"s":"99999999999999999"}';
  expect(jsonText(parseJson(text))).toBe(text);
  const numbers = (parseJson(text) as { a: unknown[] }).a.map((one) => typeof one);
  expect(numbers).toEqual(["number", "object", "object", "number", "number", "object"]);
  // 0.1 with more digits than a number has is another number.
  expect(jsonText(parseJson("[0.1000000000000000001]"))).toBe("[0.1000000000000000001]");
  // What is shown may drop a zero; what is sent on may not.
  expect(jsonText(parseJson("[1.0,-0,1e3,1e-400]"))).toBe("[1,0,1000,1e-400]");
  expect(jsonText(parseJson("[1.0,-0,1e3]", true))).toBe("[1.0,-0,1e3]");
  // Numbers in strings are text, whatever stands before a quote; a string may be long.
  const strings = `["99999999999999999\\\\",99999999999999999,"\\"99999999999999999\\\\\\"",${JSON.stringify("1\\".repeat(4_000_000))}]`;
  expect(jsonText(parseJson(strings)) === strings).toBe(true);
  expect(() => parseJson("{1}")).toThrow(SyntaxError);
  expect(() => parseJson("[99999999999999999")).toThrow(SyntaxError);
  expect(prettyJson(parseJson('{"a":[1,{}],"b":99999999999999999}'))).toBe(
    '{\n  "a": [\n    1,\n    {}\n  ],\n  "b": 99999999999999999\n}',
  );
});

test("characters that cannot be seen are escapes in JSON", () => {
  expect(jsonText({ "\u202e": "a\u2066b\u0007\u009fc\u061c" })).toBe(
    '{"\\u202e":"a\\u2066b\\u0007\\u009fc\\u061c"}',
  );
  expect(JSON.parse(jsonText("\u202e\n"))).toBe("\u202e\n");
});

test("a typed number is the number that was typed", () => {
  const texts = ["18446744073709551615", " 7 ", "+7", "0.70", "1e3"].map((text) =>
    String(numberOf(text)),
  );
  expect(texts).toEqual(["18446744073709551615", "7", "7", "0.70", "1e3"]);
  for (const wrong of ["", "many", "0x10", "1,000", "07", "1 2", "NaN", "Infinity", "--1"])
    expect(numberOf(wrong)).toBeUndefined();
});

function steps(...lines: [action: string, depth: number, decision?: Step["decision"]][]): Step[] {
  return lines.map(([action, depth, decision = "proceed"], position) => ({
    seq: position + 2,
    position,
    depth,
    action,
    cut: false,
    applicable: true,
    score: decision === "proceed" ? 0 : 1,
    violations: decision === "proceed" ? [] : ["format"],
    decision,
    needs_review: false,
    usage: { prompt: 0, completion: 0 },
    elapsed_ms: 0,
  }));
}

function pairs(a: Step[], b: Step[]): string[] {
  return aligned(a, b).map((row) => `${row.a?.action ?? "-"} ${row.b?.action ?? "-"}`);
}

test("two runs are aligned by what was committed", () => {
  const plain = steps(["x", 0], ["y", 1], ["z", 2]);
  expect(pairs(plain, plain)).toEqual(["x x", "y y", "z z"]);
  // One more rejection stands alone; what is below it is the same.
  const more = steps(["x", 0], ["bad", 1, "backtrack"], ["y", 1], ["z", 2]);
  expect(pairs(plain, more)).toEqual(["x x", "- bad", "y y", "z z"]);
  expect(pairs(more, plain)).toEqual(["x x", "bad -", "y y", "z z"]);
  // Both reject something else in the same place, and one rejects once more.
  const one = steps(["x", 0], ["p", 1, "retry"], ["y", 1]);
  const two = steps(["x", 0], ["q", 1, "backtrack"], ["r", 1, "backtrack"], ["y", 1]);
  expect(pairs(one, two)).toEqual(["x x", "p q", "- r", "y y"]);
  // After an undoing to depth 1, the other run waits until the first is as deep again.
  const undone = steps(["x", 0], ["y", 1], ["w", 1], ["v", 2]);
  expect(pairs(undone, plain)).toEqual(["x x", "y y", "w -", "v z"]);
  expect(pairs([], plain)).toEqual(["- x", "- y", "- z"]);
});
