import { operatorsInWords, stepInWords, wholeInWords } from "../history/words.ts";
import type { Step, Story } from "./story.ts";

/** A step as people read it. */
export const inWords = (step: Step): string => stepInWords(step, clusterName);

/** A story as people read it, with the steps that were kept, under their own numbers. */
export function storyInWords(story: Story, kept: readonly number[]): string {
  const { tenants, clusters, bindings, services, intents, operators } = story.beginning;
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
  const who = tenants.length === 1 ? "one tenant" : "two tenants";
  const beginning = `${who}; ${owned.join(", ")}; ${wishes.join("; ")}; ${operatorsInWords(operators)}`;
  return wholeInWords(story, kept, beginning, inWords);
}

const clusterName = (index: number): string => `edge-${"abcdefgh".charAt(index)}`;
