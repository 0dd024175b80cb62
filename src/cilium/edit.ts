// What an edit of a spec asks to be removed, for the last gate: which object it is of, and how its people approve it.

import { approvalAnnotation, isApproved } from "../core/approval.ts";
import type { Edit } from "../core/plan.ts";
import { word } from "../core/command.ts";
import type { CiliumIntent } from "./intent.ts";

/** Why something stays that would go by an edit of which nobody can tell what it means. */
export const removalDoubted = "RemovalDoubted";

/** An edit of which nobody can tell what it means: nothing goes by it, whoever approves it and however long it takes. */
export type DoubtfulEdit = Edit & {
  readonly doubt: string;
  /** What people can do about it. */
  readonly way: Way;
  /** The member that a thing is about which is another cluster now. */
  readonly member?: string;
};

/** Where the reason of a doubt lies, and so what settles it. */
export type Way =
  | { readonly settle: "spec" }
  | { readonly settle: "suspend" }
  | {
      readonly settle: "kubeconfig" | "identity";
      readonly clusters: readonly string[];
      /** The command that approves the cluster that a kubeconfig leads to now. */
      readonly approve?: string;
    };

/** Why nobody can tell what an edit means, and what settles it. */
export type MeshDoubt = { readonly text: string; readonly way: Way };

/** An edit of the spec of an intent; `about` is what it takes apart on a cluster. */
export const editOf = (
  { id, kind, place, generation, object }: CiliumIntent,
  about: string,
  more: Pick<Edit, "always"> & { readonly doubt?: MeshDoubt | undefined; readonly member?: string } = {},
): Edit | DoubtfulEdit => ({
  intent: id,
  about,
  ...(more.always === undefined ? {} : { always: more.always }),
  ...(more.doubt === undefined ? {} : { doubt: more.doubt.text, way: more.doubt.way }),
  ...(more.member === undefined ? {} : { member: more.member }),
  isApproved: isApproved(object.metadata),
  approve: approvalOf({ kind, place, generation }),
});

/** The command that approves what the spec of an intent removes; or, with a cluster, that a member leads there now. */
export const approvalOf = (
  { kind, place, generation }: Pick<CiliumIntent, "kind" | "place" | "generation">,
  cluster?: string,
): string =>
  `kubectl -n ${word(place.namespace)} annotate ${kind.toLowerCase()} ${word(place.name)} ${approvalAnnotation}=${word(cluster ?? String(generation))} --overwrite`;
