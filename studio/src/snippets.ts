// Requests to copy. Shells and Python read them as they stand; the key is taken from the environment.

import { jsonText } from "./exact";

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

export function asCurl(method: "GET" | "POST", path: string, body?: string): string {
  const parts = ["curl -sS", '-H "Authorization: Bearer $PRIME_API_KEY"'];
  if (method === "POST") parts.push("-X POST");
  if (body !== undefined) parts.push(`-d ${shellQuoted(body)}`);
  return [...parts, shellQuoted(location.origin + path)].join(" ");
}

export function asPython(method: "GET" | "POST", path: string, body?: string): string {
  // A JSON string is a Python string, but for characters outside the basic plane, which stay as they are.
  const data = body === undefined ? "None" : `${jsonText(body)}.encode()`;
  return [
    "import json, os, urllib.request",
    "",
    `request = urllib.request.Request(${jsonText(location.origin + path)}, data=${data}, method="${method}")`,
    'request.add_header("Authorization", "Bearer " + os.environ.get("PRIME_API_KEY", ""))',
    "with urllib.request.urlopen(request) as response:",
    "    print(json.dumps(json.load(response), indent=2))",
    "",
  ].join("\n");
}
