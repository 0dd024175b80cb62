import { type BudgetName, type Budgets, overBudget } from "../core/budgets.ts";
import { fieldsOf, textOf } from "../core/json.ts";
import { err, ok, type Result } from "../core/result.ts";
import type { KubeFailure } from "./failure.ts";

/** How many objects are asked for at once, unless they turn out to be large. */
export const pageSizeMax = 500;

/** How many times fewer are asked for after a page that was too large. */
const shrinkFactor = 5;

/** What a page with fewer objects has less of. */
const shrinking: readonly BudgetName[] = ["answer-bytes", "answer-elements"];

/** Longer than any resourceVersion or continue token; both go back to the server in a path. */
const markCharsMax = 8_192;

/** Asks for one page. */
export type AskPage = (query: Readonly<Record<string, string>>) => Promise<Result<unknown, KubeFailure>>;

/** What reading a list is given, and what it learns: how many objects of its kind fit into a page. */
export type Paging = { readonly budgets: Budgets; readonly objects: BudgetName; pageSize: number };

/**
 * Asks for page after page until there are no more, handing each on and keeping none. The resourceVersion is the first
 * page's: watching from there misses nothing, even if a later page were newer.
 */
export async function readPages(
  ask: AskPage,
  onPage: (items: readonly unknown[]) => void,
  paging: Paging,
): Promise<Result<{ readonly resourceVersion: string }, KubeFailure>> {
  const { budgets } = paging;
  const objectsMax = budgets[paging.objects];
  let objects = 0;
  let pages = 0;
  let resourceVersion: string | undefined;
  let next: string | undefined;
  // Pages may be small, but each has to bring something in the long run.
  while (pages < objects + 10 * Math.ceil(objectsMax / pageSizeMax)) {
    const answer = await ask({ limit: String(paging.pageSize), ...(next === undefined ? {} : { continue: next }) });
    if (!answer.ok && isTooLarge(answer.error) && paging.pageSize > 1) {
      paging.pageSize = Math.max(1, Math.floor(paging.pageSize / shrinkFactor));
      continue;
    }
    if (!answer.ok) return answer;
    pages += 1;
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
    if (objects > objectsMax) return err(overBudget(paging.objects, objects, budgets));
    onPage(list);
    if (next === undefined) return ok({ resourceVersion });
  }
  return garbled(`a list of more than ${pages} pages for ${objects} objects`);
}

const isTooLarge = (failure: KubeFailure): boolean =>
  failure.kind === "overBudget" && shrinking.includes(failure.budget);

const garbled = (detail: string): Result<never, KubeFailure> => err({ kind: "garbled", detail });
