import { describe, expect, test } from "vitest";
import { nodeSchema } from "../../../src/api/node.ts";
import { peerSchema } from "../../../src/api/peer.ts";
import { secretSchema } from "../../../src/api/secret.ts";

describe("nodeSchema", () => {
  test("reads what we use and copies nothing else", () => {
    const read = {
      metadata: {
        name: "n1",
        uid: "7a",
        labels: { "kubernetes.io/os": "linux" },
        annotations: { "kilo.squat.ai/wireguard-ip": "10.4.0.1/16" },
        creationTimestamp: "2026-05-11T10:00:00Z",
      },
      spec: { podCIDR: "10.1.0.0/24", podCIDRs: ["10.1.0.0/24", "fd00::/64"] },
      status: {
        addresses: [{ type: "InternalIP", address: "192.0.2.1" }],
        conditions: [{ type: "Ready", status: "True" }],
      },
    };
    const whole = {
      apiVersion: "v1",
      kind: "Node",
      metadata: { ...read.metadata, managedFields: [{}] },
      spec: { ...read.spec, taints: [{ key: "a" }] },
      status: {
        ...read.status,
        conditions: [{ type: "Ready", status: "True", lastHeartbeatTime: "2026-05-11T10:00:00Z" }],
        images: [],
      },
    };
    expect(nodeSchema.parse(whole)).toEqual(read);
  });

  test("a bare node is a node, and so is one with nulls where Go writes them", () => {
    expect(nodeSchema.parse({ metadata: { name: "n1" } })).toEqual({ metadata: { name: "n1" } });
    const nulls = { metadata: { name: "n1", creationTimestamp: null, annotations: null }, spec: { podCIDRs: null } };
    expect(nodeSchema.parse(nulls)).toEqual({ metadata: { name: "n1" }, spec: {} });
  });
});

describe("secretSchema", () => {
  test("a parsed Secret carries the names of its keys and none of its values", () => {
    const secret = {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "edge-kubeconfig", namespace: "kilo-system", uid: "7a" },
      type: "Opaque",
      data: { kubeconfig: "c2VjcmV0" },
      stringData: { kubeconfig: "secret" },
    };
    expect(secretSchema.parse(secret)).toEqual({
      metadata: { name: "edge-kubeconfig", namespace: "kilo-system", uid: "7a" },
      type: "Opaque",
      data: { kubeconfig: "[opaque]" },
    });
  });

  test("a Secret may come without data", () => {
    expect(secretSchema.parse({ metadata: { name: "s" } })).toEqual({ metadata: { name: "s", namespace: "default" } });
  });

  test("no error quotes a value", () => {
    const parsed = secretSchema.safeParse({ metadata: { name: "s" }, type: 1, data: "hunter2" });
    expect(parsed.success).toBe(false);
    expect(JSON.stringify(parsed.error?.issues)).not.toContain("hunter2");
  });
});

describe("peerSchema", () => {
  const spec = {
    publicKey: "GxXyBg8UHIsx71FYcP7RtrEELr9WOApRtjxMcL3tFyE=",
    allowedIPs: ["10.2.1.0/24", "10.5.0.1/32"],
    endpoint: { dnsOrIP: { ip: "172.30.0.21" }, port: 51820 },
    persistentKeepalive: 25,
  };

  test("reads what we use; the preshared key is left where it is", () => {
    const metadata = { name: "m--b--b1", resourceVersion: "5", labels: { "kilo-clustermesh.io/mesh": "m" } };
    const parsed = peerSchema.parse({ metadata, spec: { ...spec, presharedKey: "hunter2" } });
    expect(parsed).toEqual({ metadata, spec });
  });

  test("a roaming peer has no endpoint", () => {
    const roaming = { metadata: { name: "p" }, spec: { publicKey: spec.publicKey, allowedIPs: [] } };
    expect(peerSchema.parse(roaming)).toEqual(roaming);
  });

  test.each([
    { ...spec, publicKey: undefined },
    { ...spec, allowedIPs: undefined },
    { ...spec, endpoint: { port: 1 } },
    { ...spec, endpoint: { dnsOrIP: {} } },
  ])("what Kilo's own schema refuses is no Peer: %j", (broken) => {
    expect(peerSchema.safeParse({ metadata: { name: "p" }, spec: broken }).success).toBe(false);
  });
});
