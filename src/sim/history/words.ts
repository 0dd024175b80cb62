import type { AnyStep } from "./course.ts";
import type { Step, Story } from "./story.ts";

/** A step as people read it. */
export const inWords = (step: Step): string => stepInWords(step, clusterName);

/** A story as people read it, with the steps that were kept, under their own numbers. */
export function storyInWords(story: Story, kept: readonly number[]): string {
  const { nodes, meshes, operators } = story.beginning;
  const clusters = nodes.map((count, index) => `${clusterName(index)} with ${count} node${count === 1 ? "" : "s"}`);
  const joined = meshes.map(
    ({ namespace, name, members }) => `${namespace}/${name} of ${members.map(clusterName).join(", ")}`,
  );
  const beginning = `clusters ${clusters.join(", ")}; mesh ${joined.join("; mesh ")}; ${operatorsInWords(operators)}`;
  return wholeInWords(story, kept, beginning, inWords);
}

const clusterName = (index: number): string => "abcdefgh".charAt(index);

/** A step of any kind of story as people read it. */
export function stepInWords(step: AnyStep, nameOf: (cluster: number) => string): string {
  const { atMs: _, do: what, ...rest } = step;
  const details = Object.entries(rest).map(([name, value]) => `${name} ${wordFor(name, value, nameOf)}`);
  return `${what}${details.length === 0 ? "" : ` (${details.join(", ")})`}`;
}

/** A story of any kind: how it began, and the steps that were kept. */
export function wholeInWords<Told extends AnyStep>(
  { seed, steps }: { readonly seed: string; readonly steps: readonly Told[] },
  kept: readonly number[],
  beginning: string,
  words: (step: Told) => string,
): string {
  return [
    `the story of seed ${seed}${kept.length === steps.length ? "" : `, ${kept.length} of its ${steps.length} steps`}:`,
    `  ${beginning}`,
    ...steps.flatMap((step, index) =>
      kept.includes(index) ? [`  ${index + 1}. at ${(step.atMs / 1000).toFixed(1)} s ${words(step)}`] : [],
    ),
  ].join("\n");
}

/** How many operators there are. */
export const operatorsInWords = (count: 1 | 2): string => (count === 1 ? "one operator" : "two operators");

function wordFor(name: string, value: unknown, nameOf: (cluster: number) => string): string {
  if (name === "cluster" && typeof value === "number") return nameOf(value);
  if (name === "forMs" && typeof value === "number") return `${value / 1000} s`;
  return Array.isArray(value) ? value.join("+") : String(value);
}
