import { describe, expect, test } from "vitest";
import { addressesIn, dialOf, reachOf } from "../../../src/cilium/endpoint.ts";
import {
  binding,
  clusterOf,
  converge,
  get,
  joined,
  type Lab,
  makeLab,
  operationsOf,
  planOf,
  put,
  secretTexts,
} from "../../support/cilium-lab.ts";
import { toyLeaf, toyCa, toyPorts } from "../../support/toy-pki.ts";

const entryOf = (lab: Lab): string[] => secretTexts(clusterOf(lab, "a"), "cilium-kvstoremesh")["b"]!.split("\n");

function nodes(
  lab: Lab,
  list: readonly { name: string; internal: string; external?: string; ready?: boolean }[],
): void {
  const b = clusterOf(lab, "b");
  for (const key of b.objects.keys()) if (key.startsWith("Node/")) b.objects.delete(key);
  for (const { name, internal, external, ready = true } of list) {
    const addresses = [
      { type: "InternalIP", address: internal },
      ...(external === undefined ? [] : [{ type: "ExternalIP", address: external }]),
    ];
    const conditions = [{ type: "Ready", status: ready ? "True" : "False" }];
    put(b, { kind: "Node", metadata: { name }, spec: {}, status: { addresses, conditions } });
  }
}

async function withNodes(list: Parameters<typeof nodes>[1]): Promise<Lab> {
  const lab = makeLab([
    { name: "a", version: "1.20.1" },
    { name: "b", version: "1.20.1", service: "NodePort" },
  ]);
  nodes(lab, list);
  lab.intents.push(binding(["a", "b"]));
  await converge(lab);
  return lab;
}

const ips = (lab: Lab): string[] => entryOf(lab).flatMap((line) => /^ {4}- (.*)$/.exec(line)?.[1] ?? []);

describe("node ports", () => {
  test("three ready nodes are named, by their outside addresses if any has one", async () => {
    const lab = await withNodes([
      { name: "n1", internal: "192.168.1.1" },
      { name: "n2", internal: "192.168.1.2", external: "198.51.100.2" },
      { name: "n3", internal: "192.168.1.3", external: "198.51.100.3", ready: false },
      { name: "n4", internal: "192.168.1.4", external: "198.51.100.4" },
    ]);
    expect(entryOf(lab)[1]).toBe("- https://b.mesh.cilium.io:32379");
    expect(ips(lab)).toEqual(["198.51.100.2", "198.51.100.4"]);
  });

  test("the nodes in use stay in use when others come, and a lost one is replaced", async () => {
    const five = [3, 4, 5, 6].map((each) => ({ name: `n${each}`, internal: `192.168.1.${each}` }));
    const lab = await withNodes(five);
    expect(ips(lab)).toEqual(["192.168.1.3", "192.168.1.4", "192.168.1.5"]);
    nodes(lab, [{ name: "n1", internal: "192.168.1.1" }, ...five]);
    expect(operationsOf(planOf(lab))).toEqual([]);
    nodes(lab, [{ name: "n1", internal: "192.168.1.1" }, ...five.slice(1)]);
    await converge(lab);
    expect(ips(lab)).toEqual(["192.168.1.1", "192.168.1.4", "192.168.1.5"]);
    nodes(
      lab,
      five.map((each) => ({ ...each, ready: false })),
    );
    await converge(lab);
    expect(ips(lab)).toEqual(["192.168.1.4", "192.168.1.5"]);
  });
});

describe("load balancers", () => {
  test("a host name that the certificate names is used as it is", async () => {
    const lab = makeLab([{ name: "a" }, { name: "b", sans: { dns: ["*.elb.example.com"] } }]);
    setIngress(lab, [{ hostname: "x.elb.example.com" }]);
    lab.intents.push(binding(["a", "b"]));
    await converge(lab);
    expect(entryOf(lab)[1]).toBe("- https://x.elb.example.com:2379");
  });

  test("a host name that it does not name is resolved; until then the link waits", async () => {
    const lab = makeLab([{ name: "a", version: "1.20.1" }, { name: "b" }]);
    setIngress(lab, [{ hostname: "x.elb.example.com" }]);
    lab.intents.push(binding(["a", "b"]));
    const plan = await converge(lab);
    expect(plan.diagnostics.find(({ code }) => code === "EndpointMissing")!.message).toBe(
      "the other clusters have no way to clustermesh-apiserver: the server's certificate does not name x.elb.example.com, and the name cannot be resolved",
    );
    lab.dns.set("x.elb.example.com", "198.51.100.77");
    await converge(lab);
    expect(ips(lab)).toEqual(["198.51.100.77"]);
  });

  test("a host name that is no DNS name is not used, although the certificate names it", async () => {
    const hostname = [
      "a.evil.example:2379",
      "trusted-ca-file: /var/lib/cilium/clustermesh/third.etcd-client-ca.crt",
      "insecure-skip-tls-verify: true",
      "---",
      "#",
    ].join("\n");
    const lab = makeLab([{ name: "a" }, { name: "b", sans: { dns: [hostname] } }]);
    setIngress(lab, [{ hostname }]);
    lab.intents.push(binding(["a", "b"]));
    const plan = await converge(lab);
    expect(secretTexts(clusterOf(lab, "a"), "cilium-kvstoremesh")["b"]).toBeUndefined();
    expect(plan.diagnostics.find(({ code }) => code === "EndpointMissing")!.message).toContain(
      'the other clusters have no way to clustermesh-apiserver: its load balancer is called "a.evil.example:2379',
    );
    expect(plan.diagnostics.find(({ code }) => code === "EndpointMissing")!.message).toContain("which is no DNS name");
  });

  test("what the spec says wins, also over the type of the Service", async () => {
    const lab = makeLab([
      { name: "a", version: "1.20.1" },
      { name: "b", service: "ClusterIP" },
    ]);
    lab.intents.push(binding(["a", "b"]));
    lab.intents[0]!["spec"].clusterRefs[1].endpoints = ["[2001:db8::7]:8443", "198.51.100.9:8443"];
    await converge(lab);
    expect(entryOf(lab)[1]).toBe("- https://b.mesh.cilium.io:8443");
    expect(ips(lab)).toEqual(["198.51.100.9", "2001:db8::7"]);
  });

  test("node ports of a load balancer are used if the mesh asks for them", async () => {
    const spec = { meshConfig: { serviceType: "NodePort" } };
    const lab = await joined([{ name: "a", version: "1.20.1" }, { name: "b" }], { spec });
    expect(ips(lab)).toEqual(["192.168.1.1", "192.168.1.2"]);
  });
});

describe("dialOf", () => {
  const ca = toyCa("ca", 0, 10);
  const certificate = (dns: string[], ipAddresses: string[] = []) =>
    toyPorts.inspect(toyLeaf(ca, "s", 0, 10, { use: "server", dns, ips: ipAddresses }).cert)[0]!;
  const ref = { name: "b", endpoints: ["198.51.100.1:2379", "[2001:db8::1]:2379"] };
  const reach = reachOf({ ref, facts: undefined }, undefined, new Set());

  test("a certificate that names neither the address nor the mesh's name is of no use", () => {
    const dial = dialOf(reach.ok ? reach.value : never(), "b", certificate(["example.com"]), new Map());
    expect(dial).toEqual({
      ok: false,
      error: {
        code: "EndpointMissing",
        detail: "the server's certificate names neither b.mesh.cilium.io nor any of its addresses",
      },
    });
  });

  test("only the addresses that it names are used, if it names any", () => {
    const named = certificate(["*.mesh.cilium.io"], ["2001:0db8::1"]);
    expect(dialOf(reach.ok ? reach.value : never(), "b", named, new Map())).toEqual({
      ok: true,
      value: { urls: ["https://[2001:db8::1]:2379"], alias: undefined },
    });
  });

  test("the addresses of an entry are read back from it", () => {
    expect(
      addressesIn(["https://198.51.100.1:2379", "https://[2001:db8::1]:2379", "https://b.mesh.cilium.io:1"]),
    ).toEqual(["198.51.100.1", "2001:db8::1"]);
  });
});

function never(): never {
  throw new Error("the way was found before");
}

function setIngress(lab: Lab, ingress: readonly { hostname: string }[]): void {
  const service = structuredClone(get(clusterOf(lab, "b"), "Service", "clustermesh-apiserver")!);
  service["status"].loadBalancer.ingress = ingress;
  put(clusterOf(lab, "b"), service);
}
