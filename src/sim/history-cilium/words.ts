import type { Step, Story } from "./story.ts";

/** A step as people read it. */
export function inWords(step: Step): string {
  const { atMs: _, do: what, ...rest } = step;
  const details = Object.entries(rest).map(([name, value]) => `${name} ${wordFor(name, value)}`);
  return `${what}${details.length === 0 ? "" : ` (${details.join(", ")})`}`;
}

/** A story as people read it, with the steps that were kept, under their own numbers. */
export function storyInWords({ seed, beginning, steps }: Story, kept: readonly number[]): string {
  const { tenants, clusters, bindings, services, intents, operators } = beginning;
  const owned = clusters.map(
    ({ name, workspace, version, authMode, serviceType }) =>
      `${name} of ${workspace} (${version}, ${authMode}, ${serviceType})`,
  );
  const wishes = [
    ...bindings.map(
      ({ tenant, name, members }) => `binding ${name} of tenant ${tenant + 1}: ${members.map(clusterName).join(", ")}`,
    ),
    ...services.map(({ tenant, name }) => `service ${name} of tenant ${tenant + 1}`),
    ...intents.map(({ tenant, action, mode }) => `${mode} ${action} of tenant ${tenant + 1}`),
  ];
  return [
    `the story of seed ${seed}${kept.length === steps.length ? "" : `, ${kept.length} of its ${steps.length} steps`}:`,
    `  ${tenants.length === 1 ? "one tenant" : "two tenants"}; ${owned.join(", ")}; ${wishes.join("; ")}; ${operators === 1 ? "one operator" : "two operators"}`,
    ...steps.flatMap((step, index) =>
      kept.includes(index) ? [`  ${index + 1}. at ${(step.atMs / 1000).toFixed(1)} s ${inWords(step)}`] : [],
    ),
  ].join("\n");
}

const clusterName = (index: number): string => `edge-${"abcdefgh".charAt(index)}`;

function wordFor(name: string, value: unknown): string {
  if (name === "cluster" && typeof value === "number") return clusterName(value);
  if (name === "forMs" && typeof value === "number") return `${value / 1000} s`;
  return Array.isArray(value) ? value.join("+") : String(value);
}
