import type { LinkState } from "../api/fabric.ts";
import type { MeshState } from "./mesh-state.ts";

/** One direction between two clusters: whether the first has what the second publishes. */
export type Link = {
  readonly from: string;
  readonly to: string;
  readonly controlPlane: LinkState;
  /** Why it is not up, in one word. */
  readonly reason: string | undefined;
};

/** The links of a mesh as others are told of them. */
export const linksOf = ({ links }: MeshState): readonly Link[] =>
  links.map(({ from, to, ready, reason }) => ({
    from,
    to,
    controlPlane: ready === undefined ? "Unknown" : ready ? "Up" : "Down",
    reason: ready === true ? undefined : reason,
  }));
