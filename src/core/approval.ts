// A removal that a guard holds is carried out at once when somebody approves it: on the object whose spec asks for it,
// for the generation that asks for it. The next edit of the spec is not covered, and neither is what no edit asks for:
// that a kubeconfig leads to another cluster is approved with the UID of that cluster.

import { fieldsOf, textOf } from "./json.ts";
import { labelValue } from "./naming.ts";

/** The annotation that approves what a spec removes; its value is the object's `metadata.generation`. */
export const approvalAnnotation = "causeway.dev/approve-removal";

/** What an object's annotation approves, if it has one. */
export const approvalIn = (metadata: unknown): string | undefined =>
  textOf(fieldsOf(fieldsOf(metadata)["annotations"])[approvalAnnotation]);

/** Whether the generation that an object has now is approved. */
export function isApproved(metadata: unknown): boolean {
  const { generation } = fieldsOf(metadata);
  return typeof generation === "number" && approvalIn(metadata) === String(generation);
}

/** What approves that a member leads to the cluster with this UID now. No cluster can call itself a generation. */
export const clusterApproval = (uid: string): string => `uid:${labelValue(uid)}`;

/** Whether that is approved. */
export const approvesCluster = (metadata: unknown, uid: string | undefined): boolean =>
  uid !== undefined && approvalIn(metadata) === clusterApproval(uid);
