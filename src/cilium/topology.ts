import type { Topology } from "../api/topology.ts";

/** Which of the named clusters are to be joined, each pair once, and the names that nobody has. */
export function pairsOf(
  topology: Topology | undefined,
  names: readonly string[],
): { readonly pairs: readonly (readonly [string, string])[]; readonly unknown: readonly string[] } {
  const known = new Set(names);
  switch (topology?.type) {
    case undefined:
    case "Full":
      return { pairs: names.flatMap((a, index) => names.slice(index + 1).map((b) => [a, b] as const)), unknown: [] };
    case "Hub": {
      const { hub } = topology;
      if (!known.has(hub)) return { pairs: [], unknown: [hub] };
      return { pairs: names.flatMap((name) => (name === hub ? [] : [[hub, name] as const])), unknown: [] };
    }
    case "Pairs": {
      const pairs = new Map<string, readonly [string, string]>();
      const unknown = new Set<string>();
      for (const { clusters } of topology.pairs) {
        const [a = "", b = ""] = clusters;
        for (const name of [a, b]) if (!known.has(name)) unknown.add(name);
        if (known.has(a) && known.has(b) && a !== b) pairs.set(JSON.stringify(a < b ? [a, b] : [b, a]), [a, b]);
      }
      return { pairs: [...pairs.values()], unknown: [...unknown] };
    }
  }
}
