import type { Step, Story } from "./story.ts";

/** A step as people read it. */
export function inWords(step: Step): string {
  const { atMs: _, do: what, ...rest } = step;
  const details = Object.entries(rest).map(([name, value]) => `${name} ${wordFor(name, value)}`);
  return `${what}${details.length === 0 ? "" : ` (${details.join(", ")})`}`;
}

/** A story as people read it, with the steps that were kept, under their own numbers. */
export function storyInWords({ seed, beginning, steps }: Story, kept: readonly number[]): string {
  const { nodes, meshes, operators } = beginning;
  const clusters = nodes.map((count, index) => `${clusterName(index)} with ${count} node${count === 1 ? "" : "s"}`);
  const joined = meshes.map(
    ({ namespace, name, members }) => `${namespace}/${name} of ${members.map(clusterName).join(", ")}`,
  );
  return [
    `the story of seed ${seed}${kept.length === steps.length ? "" : `, ${kept.length} of its ${steps.length} steps`}:`,
    `  clusters ${clusters.join(", ")}; mesh ${joined.join("; mesh ")}; ${operators === 1 ? "one operator" : "two operators"}`,
    ...steps.flatMap((step, index) =>
      kept.includes(index) ? [`  ${index + 1}. at ${(step.atMs / 1000).toFixed(1)} s ${inWords(step)}`] : [],
    ),
  ].join("\n");
}

const clusterName = (index: number): string => "abcdefgh".charAt(index);

function wordFor(name: string, value: unknown): string {
  if (name === "cluster" && typeof value === "number") return clusterName(value);
  if (name === "forMs" && typeof value === "number") return `${value / 1000} s`;
  return Array.isArray(value) ? value.join("+") : String(value);
}
