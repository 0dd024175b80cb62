import { z } from "zod";
import { apiObject, type Immutable } from "./object.ts";

/** The most pairs a `Pairs` topology may list. */
export const topologyPairsMax = 1024;

/** The name of an entry: it becomes a label value and a part of Peer names. */
export const clusterNameSchema = z
  .string()
  .max(63)
  .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/);

const pair = apiObject(
  { clusters: z.array(clusterNameSchema).min(2).max(2).describe("The names of the two entries to join.") },
  [
    {
      cel: "self.clusters[0] != self.clusters[1]",
      message: "a pair names two different clusters",
      holds: ({ clusters: [one, other] }) => one !== other,
    },
  ],
);

/** Which clusters are joined with which, as written: one object, so that the CRD can express it. */
export const topologySchema = apiObject(
  {
    type: z
      .enum(["Full", "Hub", "Pairs"])
      .describe("Full joins every cluster with every other, Hub joins each with one, Pairs joins those listed."),
    hub: clusterNameSchema.describe("With type Hub: the name of the entry that every other is joined with.").optional(),
    pairs: z.array(pair).min(1).max(topologyPairsMax).describe("With type Pairs: what is joined.").optional(),
  },
  [
    {
      cel: "(self.type == 'Hub') == has(self.hub)",
      message: "hub is required with type Hub and not allowed with another type",
      holds: ({ type, hub }) => (type === "Hub") === (hub !== undefined),
    },
    {
      cel: "(self.type == 'Pairs') == has(self.pairs)",
      message: "pairs is required with type Pairs and not allowed with another type",
      holds: ({ type, pairs }) => (type === "Pairs") === (pairs !== undefined),
    },
  ],
).transform(({ type, hub, pairs }): Topology => {
  if (type === "Full") return { type };
  if (type === "Hub" && hub !== undefined) return { type, hub };
  if (type === "Pairs" && pairs !== undefined) return { type, pairs };
  throw new Error("broken invariant: the rules of a topology were checked before it was read");
});

/** Which clusters are joined with which; that the names exist is for the planner to check. */
export type Topology =
  | { readonly type: "Full" }
  | { readonly type: "Hub"; readonly hub: string }
  | { readonly type: "Pairs"; readonly pairs: readonly Immutable<z.output<typeof pair>>[] };
