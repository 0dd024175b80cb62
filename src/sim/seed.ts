import type { RandomNames } from "./random-names.ts";
import type { Store } from "./store.ts";
import { timeText } from "./value.ts";

/** Puts into a new server what every cluster has: its first namespaces and the ranges of its Services. */
export function seedServer(store: Store, names: RandomNames, nowMs: number, serviceCidrs: readonly string[]): void {
  const creationTimestamp = timeText(nowMs);
  for (const name of ["default", "kube-node-lease", "kube-public", "kube-system"]) {
    store.put("/namespaces", name, {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: {
        name,
        uid: names.uid(),
        creationTimestamp,
        labels: { "kubernetes.io/metadata.name": name },
        managedFields: [
          {
            manager: "kube-apiserver",
            operation: "Update",
            apiVersion: "v1",
            time: creationTimestamp,
            fieldsType: "FieldsV1",
            fieldsV1: { "f:metadata": { "f:labels": { ".": {}, "f:kubernetes.io/metadata.name": {} } } },
          },
        ],
      },
      spec: { finalizers: ["kubernetes"] },
      status: { phase: "Active" },
    });
  }
  if (serviceCidrs.length === 0) return;
  store.put("networking.k8s.io/servicecidrs", "kubernetes", {
    apiVersion: "networking.k8s.io/v1",
    kind: "ServiceCIDR",
    metadata: { name: "kubernetes", uid: names.uid(), creationTimestamp },
    spec: { cidrs: serviceCidrs },
    status: {},
  });
}
