import { fieldsOf, textOf } from "../core/json.ts";
import { err, ok, type Result } from "../core/result.ts";
import type { KubeFailure } from "./failure.ts";

/** How much is asked for at once. */
const pageSize = 500;

/** Longer than any resourceVersion or continue token; both go back to the server in a path. */
const markCharsMax = 8_192;

/** Asks for one page. */
export type AskPage = (query: Readonly<Record<string, string>>) => Promise<Result<unknown, KubeFailure>>;

/**
 * Asks for page after page until there are no more, handing each on and keeping none. The resourceVersion is the first
 * page's: watching from there misses nothing, even if a later page were newer.
 */
export async function readPages(
  ask: AskPage,
  onPage: (items: readonly unknown[]) => void,
  objectsMax: number,
): Promise<Result<{ readonly resourceVersion: string }, KubeFailure>> {
  const pagesMax = 10 * Math.ceil(objectsMax / pageSize);
  let objects = 0;
  let resourceVersion: string | undefined;
  let next: string | undefined;
  for (let page = 0; page < pagesMax; page += 1) {
    const answer = await ask({ limit: String(pageSize), ...(next === undefined ? {} : { continue: next }) });
    if (!answer.ok) return answer;
    const { items, metadata } = fieldsOf(answer.value);
    const marks = fieldsOf(metadata);
    resourceVersion ??= textOf(marks["resourceVersion"]);
    next = textOf(marks["continue"]);
    // An empty list that never was one would have everything deleted: both parts must be there, `null` being Go's [].
    const list = items === null ? [] : items;
    if (!Array.isArray(list) || resourceVersion === undefined)
      return garbled("not a list: no items or resourceVersion");
    if (resourceVersion.length > markCharsMax || (next?.length ?? 0) > markCharsMax)
      return garbled("a list with a resourceVersion or continue token of absurd length");
    objects += list.length;
    if (objects > objectsMax) return garbled(`a list of more than ${objectsMax} objects`);
    onPage(list);
    if (next === undefined) return ok({ resourceVersion });
  }
  return garbled(`a list of more than ${pagesMax} pages`);
}

const garbled = (detail: string): Result<never, KubeFailure> => err({ kind: "garbled", detail });
