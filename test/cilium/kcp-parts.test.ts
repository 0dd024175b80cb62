// kcp itself: what the tests of a provider behind it take for granted.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { type Kcp, useKcp, type Workspace } from "../support/kcp.ts";

const home = "root:kcp-parts";
const group = "toys.example";
const schema = {
  type: "object",
  properties: {
    spec: { type: "object", properties: { colour: { type: "string" } } },
    status: { type: "object", properties: { phase: { type: "string" } } },
  },
};
const offer = `
apiVersion: apis.kcp.io/v1alpha1
kind: APIResourceSchema
metadata: { name: v1.toys.${group} }
spec:
  group: ${group}
  names: { plural: toys, singular: toy, kind: Toy, listKind: ToyList }
  scope: Namespaced
  versions:
  - { name: v1, served: true, storage: true, subresources: { status: {} }, schema: ${JSON.stringify(schema)} }
---
apiVersion: apis.kcp.io/v1alpha2
kind: APIExport
metadata: { name: toys }
spec:
  resources: [{ group: ${group}, name: toys, schema: v1.toys.${group}, storage: { crd: {} } }]
`;
const binding = `
apiVersion: apis.kcp.io/v1alpha2
kind: APIBinding
metadata: { name: toys }
spec: { reference: { export: { path: "${home}:provider", name: toys } } }
`;
const colourOf = (path: string): string => path.slice(home.length + 1);
const toy = (colour: string) => `
apiVersion: ${group}/v1
kind: Toy
metadata: { name: same, namespace: default }
spec: { colour: ${colour} }
`;

type Slice = { readonly status?: { readonly endpoints?: readonly { readonly url: string }[] } };
type Toy = {
  readonly metadata: { readonly name: string; readonly annotations: Readonly<Record<string, string>> };
  readonly spec: { readonly colour: string };
  readonly status?: { readonly phase: string };
};
type ToyList = { readonly items: readonly Toy[] };

describe("kcp", () => {
  let kcp: Kcp;
  let tenants: readonly Workspace[];
  beforeAll(async () => {
    kcp = await useKcp();
    await kcp.createWorkspace(home);
    [, ...tenants] = await Promise.all(
      ["provider", "red", "green", "blue"].map((name) => kcp.createWorkspace(`${home}:${name}`)),
    );
  });
  afterAll(async () => await kcp?.close());

  /** The paths of the virtual workspace of the export: its endpoints without the host, which is ours. */
  const endpoints = async (): Promise<readonly string[]> => {
    const slices = `/clusters/${home}:provider/apis/apis.kcp.io/v1alpha1/apiexportendpointslices`;
    const { body } = await kcp.request<Slice>("GET", `${slices}/toys`);
    return (body.status?.endpoints ?? []).map(({ url }) => url.slice(kcp.url.length));
  };

  test("an export is found through an endpoint that appears with its first binding, and all tenants through that", async () => {
    await kcp.apply(`${home}:provider`, offer);
    await eventually("the endpoint slice", async () => {
      const slices = `/clusters/${home}:provider/apis/apis.kcp.io/v1alpha1/apiexportendpointslices`;
      return (await kcp.request("GET", `${slices}/toys`)).status === 200;
    });
    expect(await endpoints()).toEqual([]);

    await Promise.all(tenants.map(({ path }) => kcp.apply(path, binding)));
    const [virtual = ""] = await eventually("an endpoint", async () => {
      const found = await endpoints();
      return found.length > 0 && found;
    });
    expect(virtual).toMatch(/^\/services\/apiexport\/[a-z0-9]+\/toys$/);

    await Promise.all(tenants.map(({ path }) => kcp.apply(path, toy(colourOf(path)))));
    const found = await eventually("the toys of all tenants", async () => {
      const { body } = await kcp.request<ToyList>("GET", `${virtual}/clusters/*/apis/${group}/v1/toys`);
      return body.items?.length === tenants.length && body.items;
    });
    const colours = found.map(({ metadata, spec }) => [metadata.annotations["kcp.io/cluster"], spec.colour]);
    expect(new Map(colours as [string, string][])).toEqual(
      new Map(tenants.map(({ cluster, path }) => [cluster, colourOf(path)])),
    );
  });

  test("a status is written through the virtual workspace and read in the tenant's own", async () => {
    const [virtual = ""] = await endpoints();
    const [red, green] = tenants;
    const path = `/apis/${group}/v1/namespaces/default/toys/same`;
    const written = await kcp.request(
      "PATCH",
      `${virtual}/clusters/${red?.cluster}${path}/status`,
      { status: { phase: "Broken" } },
      "application/merge-patch+json",
    );
    expect(written.status).toBe(200);
    const seen = (workspace: Workspace | undefined) => kcp.request<Toy>("GET", `/clusters/${workspace?.path}${path}`);
    expect((await seen(red)).body.status).toEqual({ phase: "Broken" });
    expect((await seen(green)).body.status).toBeUndefined();
  });

  test("a kubeconfig leads to one workspace", () => {
    const text = kcp.kubeconfig(`${home}:red`);
    const { clusters, users } = JSON.parse(text) as {
      readonly clusters: readonly { readonly cluster: { readonly server: string } }[];
      readonly users: readonly { readonly user: { readonly token: string } }[];
    };
    expect(clusters[0]?.cluster.server).toBe(`${kcp.url}/clusters/${home}:red`);
    expect(users[0]?.user.token).toBe(kcp.adminToken);
  });

  test("it can be stopped and started again, and keeps its data", async () => {
    await kcp.stop();
    await expect(kcp.request("GET", "/readyz")).rejects.toThrow();
    await kcp.start();
    const path = `/clusters/${home}:blue/apis/${group}/v1/namespaces/default/toys/same`;
    // It says that it is ready before it serves what was bound.
    const spec = await eventually("the toy", async () => (await kcp.request<Toy>("GET", path)).body.spec);
    expect(spec).toEqual({ colour: "blue" });
  });
});
