/** Where a server keeps the kinds that agents and judges look at. */
export const storages = {
  nodes: "/nodes",
  secrets: "/secrets",
  peers: "kilo.squat.ai/peers",
  meshes: "kilo.squat.ai/clustermeshes",
} as const;
