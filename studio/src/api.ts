// Requests to the daemon. The key is kept until the tab closes, and sent with each request.

import { jsonText, parseJson } from "./exact";
import type { ErrorBody } from "./types";

const KEY = "prime-key";

export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code = "",
    readonly field = "",
  ) {
    super(message);
  }
}

export const key = {
  get: (): string => sessionStorage.getItem(KEY) ?? "",
  set: (value: string): void => {
    if (value === "") sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, value);
  },
};

/** Called when the daemon asks for a key. */
export const unauthorized = new EventTarget();

function headers(more: Record<string, string> = {}): Record<string, string> {
  return key.get() === "" ? more : { ...more, Authorization: `Bearer ${key.get()}` };
}

async function checked(response: Response): Promise<Response> {
  if (response.ok || response.status === 304) return response;
  let body: ErrorBody = {};
  try {
    body = (await response.json()) as ErrorBody;
  } catch {
    // An error without a body, as of a proxy.
  }
  if (response.status === 401) unauthorized.dispatchEvent(new Event("401"));
  const message = body.error?.message ?? `The daemon answered ${response.status}.`;
  throw new ApiError(message, response.status, body.error?.code ?? "", body.error?.field ?? "");
}

/** Pauses between two attempts to reach a daemon that does not answer; the last one is repeated. */
const AWAY_MS = [500, 1000, 2000, 4000, 8000, 10_000];

/**
 * While the daemon does not answer: until it does again. One request in turn finds that out for the
 * whole page.
 */
let away: Promise<void> | undefined;

/** Says when the daemon is `away`, and when it is `back`. */
export const connection = new EventTarget();

let askNow: () => void = () => undefined;

async function untilThere(): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    const pause = AWAY_MS[Math.min(attempt, AWAY_MS.length - 1)];
    await new Promise<void>((resolve) => {
      askNow = resolve;
      setTimeout(resolve, pause);
    });
    try {
      await fetch("/livez", { cache: "no-store" });
      away = undefined;
      connection.dispatchEvent(new Event("back"));
      return;
    } catch {
      // Not there yet.
    }
  }
}

/** Ends the present pause: somebody asks to try again. */
export function tryNow(): void {
  askNow();
}

/** Waits while the daemon is away; fails if the request is given up meanwhile. */
function there(signal: AbortSignal | null | undefined): Promise<void> {
  if (away === undefined) return Promise.resolve();
  const given_up = new Promise<never>((_, reject) => {
    signal?.addEventListener("abort", () => reject(new DOMException("given up", "AbortError")), {
      once: true,
    });
  });
  return Promise.race([away, given_up]);
}

async function request(path: string, init: RequestInit): Promise<Response> {
  // What somebody sends with a button is tried at once.
  if (init.method === undefined) await there(init.signal);
  let response: Response;
  try {
    response = await fetch(path, { cache: "no-store", ...init });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    if (away === undefined) {
      away = untilThere();
      connection.dispatchEvent(new Event("away"));
    }
    throw new ApiError("The daemon does not answer.", 0);
  }
  return checked(response);
}

/** Answers that are asked for again and again, with their tags: the oldest ones are forgotten. */
const kept = new Map<string, { tag: string; text: string }>();
const KEPT_MAX = 24;
/** Longest answer that is kept, in characters. */
const KEPT_TEXT_MAX = 500_000;

function keep(name: string, tag: string | null, text: string): void {
  kept.delete(name);
  if (tag === null || text.length > KEPT_TEXT_MAX) return;
  kept.set(name, { tag, text });
  const oldest = kept.keys().next().value;
  if (kept.size > KEPT_MAX && oldest !== undefined) kept.delete(oldest);
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  // What one key may see is not kept for another one.
  const name = `${key.get()} ${path}`;
  const known = kept.get(name);
  const more: Record<string, string> = known === undefined ? {} : { "If-None-Match": known.tag };
  const response = await request(path, { headers: headers(more), signal });
  if (response.status === 304 && known !== undefined) {
    keep(name, known.tag, known.text);
    return parseJson(known.text) as T;
  }
  const text = await response.text();
  keep(name, response.headers.get("ETag"), text);
  return parseJson(text) as T;
}

/** As `get`, with each number as it is written: for what is sent again. */
export async function getAsSpelled<T>(path: string, signal?: AbortSignal): Promise<T> {
  return parseJson(await (await request(path, { headers: headers(), signal })).text(), true) as T;
}

export async function getText(path: string, signal?: AbortSignal): Promise<string> {
  return (
    await request(path, { headers: headers({ Accept: "text/plain;version=0.0.4" }), signal })
  ).text();
}

export async function getBlob(path: string): Promise<Blob> {
  return (await request(path, { headers: headers() })).blob();
}

async function send<T>(method: string, path: string, body?: unknown): Promise<T> {
  const text = body === undefined ? undefined : jsonText(body);
  const init = { method, headers: headers({ "Content-Type": "application/json" }), body: text };
  return parseJson(await (await request(path, init)).text()) as T;
}

export function post<T>(path: string, body?: unknown): Promise<T> {
  return send("POST", path, body);
}

export function patch<T>(path: string, body: unknown): Promise<T> {
  return send("PATCH", path, body);
}

export function put<T>(path: string, body: unknown): Promise<T> {
  return send("PUT", path, body);
}

/** A part of an address. */
export type Value = string | number | boolean | null | undefined;

/** A path with its query; empty values are left out. */
export function query(path: string, values: Record<string, Value>): string {
  const given = Object.entries(values).filter(
    ([, value]) => value !== undefined && value !== null && value !== "",
  );
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text === "" ? path : `${path}?${text}`;
}

export interface ServerSent {
  id: string;
  event: string;
  data: string;
}

/**
 * Reads server-sent events until the stream ends. `EventSource` cannot send a key, so this is by
 * `fetch`.
 */
export async function stream(
  path: string,
  last: string,
  onEvent: (event: ServerSent) => void,
  signal: AbortSignal,
): Promise<void> {
  const more: Record<string, string> = { Accept: "text/event-stream" };
  if (last !== "") more["Last-Event-ID"] = last;
  const response = await request(path, { headers: headers(more), signal });
  if (response.body === null) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const event: ServerSent = { id: "", event: "", data: "" };
      for (const line of block.split("\n")) {
        const at = line.indexOf(": ");
        const name = line.slice(0, at);
        if (name === "id" || name === "event" || name === "data") event[name] = line.slice(at + 2);
      }
      if (event.data !== "") onEvent(event);
    }
  }
}
