import { networkingGroup, networkingVersion } from "./networking.ts";

const common = { group: networkingGroup, version: networkingVersion, namespaced: true } as const;

/** The five kinds of the group, as an API server serves them. */
export const ciliumKinds = {
  clusterMeshBinding: { ...common, plural: "clustermeshbindings", kind: "ClusterMeshBinding" },
  globalService: { ...common, plural: "globalservices", kind: "GlobalService" },
  connectivityIntent: { ...common, plural: "connectivityintents", kind: "ConnectivityIntent" },
  exposedService: { ...common, plural: "exposedservices", kind: "ExposedService" },
  fabric: { ...common, plural: "fabrics", kind: "Fabric" },
} as const;

/** One of the five kinds. */
export type CiliumKind = (typeof ciliumKinds)[keyof typeof ciliumKinds]["kind"];
