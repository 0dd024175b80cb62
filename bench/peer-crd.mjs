// Kilo's Peer as far as its API is public: what test/support/peer-crd.ts says, for Node.js without a compiler.
const text = { type: "string" };
const dnsOrIP = { type: "object", properties: { dns: text, ip: text } };
const endpoint = {
  type: "object",
  required: ["dnsOrIP", "port"],
  properties: { dnsOrIP, port: { type: "integer", format: "int32" } },
};
const spec = {
  type: "object",
  required: ["allowedIPs", "publicKey"],
  properties: {
    allowedIPs: { type: "array", items: text },
    publicKey: text,
    presharedKey: text,
    persistentKeepalive: { type: "integer" },
    endpoint,
  },
};
const openAPIV3Schema = {
  type: "object",
  required: ["spec"],
  properties: { apiVersion: text, kind: text, metadata: { type: "object" }, spec },
};

/** A definition of Kilo's Peer. */
export const peerCrd = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "peers.kilo.squat.ai" },
  spec: {
    group: "kilo.squat.ai",
    scope: "Cluster",
    names: { kind: "Peer", listKind: "PeerList", plural: "peers", singular: "peer" },
    versions: [{ name: "v1alpha1", served: true, storage: true, schema: { openAPIV3Schema } }],
  },
};
