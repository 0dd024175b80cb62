// Kilo's Peer as far as its API is public, written anew: enough for an API server to store, prune and refuse as Kilo's
// own definition would.
const text = { type: "string" };

/** A definition of Kilo's Peer. */
export const peerDefinition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "peers.kilo.squat.ai" },
  spec: {
    group: "kilo.squat.ai",
    scope: "Cluster",
    names: { kind: "Peer", listKind: "PeerList", plural: "peers", singular: "peer" },
    versions: [
      {
        name: "v1alpha1",
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: "object",
            required: ["spec"],
            properties: {
              apiVersion: text,
              kind: text,
              metadata: { type: "object" },
              spec: {
                type: "object",
                required: ["allowedIPs", "publicKey"],
                properties: {
                  allowedIPs: { type: "array", items: text },
                  publicKey: text,
                  presharedKey: text,
                  persistentKeepalive: { type: "integer" },
                  endpoint: {
                    type: "object",
                    required: ["dnsOrIP", "port"],
                    properties: {
                      dnsOrIP: { type: "object", properties: { dns: text, ip: text } },
                      port: { type: "integer", format: "int32" },
                    },
                  },
                },
              },
            },
          },
        },
      },
    ],
  },
};
