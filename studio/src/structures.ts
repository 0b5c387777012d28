// Which trees and graphs the states of the benchmark's tasks are. What a state leaves out, such as the edges of a
// graph, is in the run's input. Both come from outside: what does not have the expected form has no structure.

type Fields = Record<string, unknown>;

export interface Node {
  label: string;
  /** Where the machine is. */
  here: boolean;
  /** What it has finished with. */
  done: boolean;
  /** Drawn with corners, to set it off from the others. */
  isSquare?: boolean;
  /** In words, where the label alone does not say it. */
  note?: string;
}

/** Nodes by identifier, each with its children in order; a null keeps the place of a missing left or right child. */
export interface Forest {
  kind: "forest";
  nodes: Map<string, Node & { children: (string | null)[] }>;
  roots: string[];
  /** Nodes that are in no tree yet. */
  outside: number;
}

export interface Edge {
  from: number;
  to: number;
  label: string;
}

export interface Graph {
  kind: "graph";
  nodes: Node[];
  edges: Edge[];
}

export type Structure = Forest | Graph;

/** More cannot be told apart on a screen. */
const TREE_MAX = 160;
const GRAPH_MAX = 40;
const EDGES_MAX = 400;
/** Longest list that is looked through for a tree. */
const LIST_MAX = 512;

class Unexpected extends Error {}

function list(value: unknown): unknown[] {
  if (!Array.isArray(value)) throw new Unexpected();
  return value;
}

function numbers(value: unknown): number[] {
  const all = list(value);
  if (all.length > LIST_MAX || !all.every((one) => Number.isInteger(one))) throw new Unexpected();
  return all as number[];
}

function numbersOr(value: unknown): number[] {
  return Array.isArray(value) ? numbers(value) : [];
}

function fields(value: unknown): Fields {
  if (value === null || typeof value !== "object") throw new Unexpected();
  return value as Fields;
}

function plain(label: string): Node {
  return { label, here: false, done: false };
}

function forest(outside = 0): Forest {
  return { kind: "forest", nodes: new Map(), roots: [], outside };
}

/** A forest from each node's parent; a node that is its own parent is a root, one with -1 too, if it has children. */
function byParent(parent: number[], isIn: (at: number) => boolean, node: (at: number) => Node): Forest {
  const parents = new Set(parent.filter((_, child) => isIn(child)));
  const members = parent.map((_, at) => at).filter((at) => isIn(at) || parents.has(at));
  const made = forest(parent.length - members.length);
  for (const at of members) made.nodes.set(String(at), { ...node(at), children: [] });
  for (const at of members) {
    const above = parent[at] ?? -1;
    const into = above === at ? undefined : made.nodes.get(String(above));
    if (into === undefined) made.roots.push(String(at));
    else into.children.push(String(at));
  }
  return made;
}

function binary(size: number, left: number[], right: number[], root: number, node: (at: number) => Node): Forest {
  if (size > TREE_MAX) throw new Unexpected();
  const made = forest();
  const child = (at: number | undefined) => (at === undefined || at < 0 || at >= size ? null : String(at));
  for (let at = 0; at < size; at += 1) {
    const children = [child(left[at]), child(right[at])];
    made.nodes.set(String(at), { ...node(at), children: children.every((one) => one === null) ? [] : children });
  }
  if (root >= 0 && root < size) made.roots.push(String(root));
  return made;
}

function heap(values: number[], at: unknown): Forest {
  const size = values.length;
  const left = values.map((_, of) => 2 * of + 1);
  const right = values.map((_, of) => 2 * of + 2);
  return binary(size, left, right, 0, (of) => ({ ...plain(String(values[of])), here: of === at }));
}

function search(field: string, state: Fields): Forest {
  const order = new Set(numbersOr(state["order"]));
  const waiting = numbersOr(state["queue"] ?? state["stack"]);
  const top = state["stack"] === undefined ? waiting[0] : waiting.at(-1);
  const parent = numbers(state[field]);
  const isIn = (at: number) => order.has(at) || waiting.includes(at) || (parent[at] ?? -1) >= 0;
  return byParent(parent, isIn, (at) => ({ label: String(at), here: at === top, done: order.has(at) }));
}

function redBlack(state: Fields): Forest {
  const made = forest();
  const known = new Set<string>();
  for (const one of list(state["nodes"])) known.add(String(list(one)[0]));
  for (const one of list(state["nodes"])) {
    const [key, colour, left, right] = list(one);
    const children = [left, right].map((child) => (known.has(String(child)) ? String(child) : null));
    made.nodes.set(String(key), {
      label: `${String(key)} ${String(colour)}`,
      here: key === state["z"],
      done: colour === "B",
      note: colour === "R" ? "red" : "black",
      children: children.every((child) => child === null) ? [] : children,
    });
  }
  if (known.has(String(state["root"]))) made.roots.push(String(state["root"]));
  return made;
}

function huffman(state: Fields): Forest {
  const merges = list(state["merges"]).map(numbers);
  const weights = numbers(state["weight"]);
  const leaves = weights.length - merges.length;
  const made = forest();
  weights.forEach((weight, at) => {
    const children = at < leaves ? [] : (merges[at - leaves] ?? []).map(String);
    made.nodes.set(String(at), { ...plain(at < leaves ? `${at}: ${weight}` : String(weight)), children });
  });
  const below = new Set(merges.flat());
  made.roots = weights.map((_, at) => at).filter((at) => !below.has(at)).map(String);
  return made;
}

function files(state: Fields): Forest {
  const made = forest();
  const rows = list(state["tree"]).map((row) => list(row).map(String));
  for (const [path = "", kind = ""] of rows) {
    const name = path.slice(path.lastIndexOf("/") + 1);
    const isFolder = kind === "d";
    const label = isFolder ? `${name}/` : name;
    made.nodes.set(path, { label, here: path === state["cwd"], done: isFolder, children: [] });
  }
  for (const path of made.nodes.keys()) {
    const above = path.slice(0, path.lastIndexOf("/")) || "/";
    const into = path === "/" ? undefined : made.nodes.get(above);
    if (into === undefined) made.roots.push(path);
    else into.children.push(path);
  }
  return made;
}

/** Edges of the same ends become one, with all labels. */
function merged(edges: Edge[]): Edge[] {
  const found = new Map<string, Edge>();
  for (const { from, to, label } of edges) {
    const key = `${from} ${to}`;
    const old = found.get(key);
    if (old === undefined) found.set(key, { from, to, label });
    else old.label = [...new Set([...old.label.split(","), label])].filter((one) => one !== "").join(",");
  }
  return [...found.values()];
}

function graph(nodes: Node[], edges: Edge[]): Graph {
  const isThere = (at: number) => Number.isInteger(at) && at >= 0 && at < nodes.length;
  if (edges.length > EDGES_MAX || !edges.every(({ from, to }) => isThere(from) && isThere(to))) throw new Unexpected();
  return { kind: "graph", nodes, edges: merged(edges) };
}

function numbered(count: unknown, here: unknown[], done: unknown[] = []): Node[] {
  if (typeof count !== "number" || !Number.isInteger(count) || count < 1 || count > GRAPH_MAX) throw new Unexpected();
  const isIn = (those: unknown[], at: number) => those.includes(at);
  return Array.from({ length: count }, (_, at) => ({ label: String(at), here: isIn(here, at), done: isIn(done, at) }));
}

/** From transitions that begin with a state and a symbol; `to` is the place of the next state in each. */
function automaton(states: unknown, active: unknown[], delta: unknown, to: number): Graph {
  const edges = list(delta).map((row) => {
    const one = list(row);
    return { from: one[0] as number, to: one[to] as number, label: String(one[1]) || "ε" };
  });
  return graph(numbered(states, active), edges);
}

function dfa(state: Fields, input: Fields): Graph {
  const alphabet = String(input["alphabet"]);
  const rows = list(input["delta"]).map(numbers);
  const edges = rows.flatMap((row, from) => row.map((to, symbol) => ({ from, to, label: alphabet[symbol] ?? "" })));
  return graph(numbered(input["states"], [state["q"]], list(input["accept"])), edges);
}

function petriNet(state: Fields, input: Fields): Graph {
  const marking = numbers(state["marking"]);
  const all = list(input["transitions"]).map(fields);
  if (marking.length + all.length > GRAPH_MAX) throw new Unexpected();
  const places = marking.map((tokens, at) => ({ ...plain(`p${at}: ${tokens}`), done: tokens > 0 }));
  const moves = all.map((_, at) => ({ ...plain(`t${at}`), here: at === state["previous"], isSquare: true }));
  const edges = all.flatMap((transition, at) => {
    const of = marking.length + at;
    const arcs = (name: string) => list(transition[name]).map(numbers);
    const weight = (tokens: number | undefined) => (tokens === 1 ? "" : String(tokens));
    return [
      ...arcs("in").map(([place = -1, tokens]) => ({ from: place, to: of, label: weight(tokens) })),
      ...arcs("out").map(([place = -1, tokens]) => ({ from: of, to: place, label: weight(tokens) })),
    ];
  });
  return graph([...places, ...moves], edges);
}

function routes(state: Fields, input: Fields): Graph {
  const tables = list(input["tables"]).map(numbers);
  const neighbours = (hops: number[]) => [...new Set(hops)].filter((to) => to >= 0);
  const edges = tables.flatMap((hops, from) => neighbours(hops).map((to) => ({ from, to, label: "" })));
  return graph(numbered(tables.length, [state["at"]]), edges);
}

function dependencies(state: Fields, input: Fields): Graph {
  const edges = list(input["edges"]).map(numbers).map(([from = -1, to = -1]) => ({ from, to, label: "" }));
  return graph(numbered(input["n"], numbersOr(state["queue"]), numbersOr(state["order"])), edges);
}

function chain(state: Fields, input: Fields): Graph {
  const rows = list(input["weights"]).map(numbers);
  const edges = rows.flatMap((row, from) => row.flatMap((weight, to) => (weight > 0 ? [{ from, to, label: "" }] : [])));
  return graph(numbered(rows.length, [state["s"]]), edges);
}

function insertion(state: Fields, input: Fields): Forest {
  const keys = numbersOr(input["keys"]);
  const node = (at: number) => ({ ...plain(String(keys[at] ?? at)), here: at === state["at"] });
  const size = list(state["heights"]).length;
  return binary(size, numbers(state["left"]), numbers(state["right"]), 0, node);
}

function inorder(state: Fields, input: Fields): Forest {
  const key = numbers(input["key"]);
  const done = numbersOr(state["order"]);
  const node = (at: number) => ({ label: String(key[at]), here: at === state["cur"], done: done.includes(at) });
  return binary(key.length, numbers(input["left"]), numbers(input["right"]), Number(input["root"]), node);
}

function sets(state: Fields): Forest {
  const found = numbersOr(state["found"]);
  const parent = numbers(state["parent"]);
  return byParent(parent, () => true, (at) => ({ ...plain(String(at)), here: found.includes(at) }));
}

const STRUCTURES = new Map<string, (state: Fields, input: Fields) => Structure>([
  ["bfs-on-graph", (state) => search("parent", state)],
  ["dfs-on-tree", (state) => search("parent", state)],
  ["dijkstra", (state) => search("pred", state)],
  ["topological-sort", dependencies],
  ["bst-insertion", insertion],
  ["bst-inorder", inorder],
  ["red-black-insert", redBlack],
  ["huffman-tree", huffman],
  ["heap-operations", (state) => heap(numbers(state["heap"]), state["node"])],
  ["heap-sort", (state) => heap(numbers(state["a"]).slice(0, Number(state["heap"])), state["node"])],
  ["union-find", sets],
  ["file-system", files],
  ["dfa-simulation", dfa],
  ["nfa-simulation", (state, input) => automaton(input["states"], numbers(state["active"]), input["delta"], 2)],
  ["pda-execution", (state, input) => automaton(input["states"], [state["q"]], input["delta"], 3)],
  ["regex-nfa", (state) => automaton(state["states"], numbersOr(state["active"]), state["edges"], 2)],
  ["petri-net", petriNet],
  ["markov-chain", chain],
  ["packet-routing", routes],
]);

/** The tree or graph that a state of a task is; undefined for other tasks, and where it would be too large to read. */
export function structureOf(task: string, state: unknown, input: unknown): Structure | undefined {
  const make = STRUCTURES.get(task);
  if (make === undefined) return undefined;
  try {
    const made = make(fields(state), input === undefined ? {} : fields(input));
    if (made.kind === "graph") return made;
    return made.nodes.size > 0 && made.nodes.size <= TREE_MAX ? made : undefined;
  } catch (error) {
    if (error instanceof Unexpected) return undefined;
    throw error;
  }
}
