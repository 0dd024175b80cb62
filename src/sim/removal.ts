// Deleting: what guards it, what delays it, and what it leaves.

import { fieldsOf, listOf, textOf } from "../core/json.ts";
import { conflict } from "./answer.ts";
import { keyOf, loaded, type Write, type WriteTools } from "./write.ts";
import { type Fields, timeText } from "./value.ts";

/** How something is deleted. */
export type RemovalOptions = {
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  readonly propagation: string | undefined;
};

/** The options in the body and the query of a request. */
export function removalOptions(body: unknown, query: URLSearchParams): RemovalOptions {
  const { preconditions, propagationPolicy } = fieldsOf(body);
  const { uid, resourceVersion } = fieldsOf(preconditions);
  return {
    uid: textOf(uid),
    resourceVersion: textOf(resourceVersion),
    propagation: textOf(propagationPolicy) ?? query.get("propagationPolicy") ?? undefined,
  };
}

/** What came of it: the object is gone, or it waits for its finalizers. */
export type Removed = { readonly gone: boolean; readonly object: Fields };

/** Deletes an object, or marks it if something still holds it. */
export function removeObject(tools: WriteTools, write: Write, options: RemovalOptions): Removed {
  const { kind, name, namespace } = write;
  const before = loaded(tools.store, write);
  const metadata = fieldsOf(before["metadata"]);
  refuseUnmet(write, metadata, options);
  const finalizers = [...listOf(metadata["finalizers"]), ...propagationFinalizers(metadata, options)];
  const isHeld = kind.kind === "Namespace" && listOf(fieldsOf(before["spec"])["finalizers"]).length > 0;
  const key = keyOf(namespace, name);
  if (finalizers.length === 0 && !isHeld) {
    if (!write.dryRun) tools.store.remove(kind.storage, key);
    return { gone: true, object: before };
  }
  if (metadata["deletionTimestamp"] !== undefined) return { gone: false, object: before };
  const { generation } = metadata;
  const marked = {
    ...before,
    metadata: {
      ...metadata,
      ...(finalizers.length === 0 ? {} : { finalizers }),
      ...(typeof generation === "number" ? { generation: generation + 1 } : {}),
      deletionTimestamp: timeText(write.nowMs),
      ...(kind.kind === "Namespace" ? {} : { deletionGracePeriodSeconds: 0 }),
    },
    ...(kind.kind === "Namespace" ? { status: { phase: "Terminating" } } : {}),
  };
  if (write.dryRun) return { gone: false, object: marked };
  return { gone: false, object: kind.load(tools.store.put(kind.storage, key, kind.save(marked))) };
}

function refuseUnmet({ kind, name }: Write, metadata: Fields, { uid, resourceVersion }: RemovalOptions): void {
  if (uid !== undefined && uid !== metadata["uid"]) {
    const why = `the UID in the precondition (${uid}) does not match the UID in record (${String(metadata["uid"])}). The object might have been deleted and then recreated`;
    throw conflict(kind.about, name, why, "kind");
  }
  if (resourceVersion !== undefined && resourceVersion !== metadata["resourceVersion"]) {
    const why = `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${String(metadata["resourceVersion"])}). The object might have been modified`;
    throw conflict(kind.about, name, why, "kind");
  }
}

function propagationFinalizers(metadata: Fields, { propagation }: RemovalOptions): readonly string[] {
  const wanted = propagation === "Foreground" ? "foregroundDeletion" : propagation === "Orphan" ? "orphan" : undefined;
  if (wanted === undefined || listOf(metadata["finalizers"]).includes(wanted)) return [];
  return [wanted];
}
