// Fills and empties the servers that tests share.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { eventually } from "./eventually.ts";
import { peerDefinition as peerCrd } from "../../src/sim/peer-definition.ts";
import type { ServerClient } from "./server-client.mjs";
import type { Server } from "./servers.ts";

/** A definition of a kind. */
export type Crd = {
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: {
    readonly group: string;
    readonly names: { readonly plural: string };
    readonly versions: readonly { readonly name: string }[];
  };
};

/** Installs our definition of Kilo's Peer and waits until Peers can be written. */
export async function installPeerCrd(server: Server): Promise<void> {
  await installCrd(server, peerCrd);
}

/** Installs our ClusterMesh from `crds/` and waits until meshes can be written. */
export async function installClusterMeshCrd(server: Server): Promise<void> {
  const path = join(import.meta.dirname, "../../crds/kilo.squat.ai_clustermeshes.yaml");
  await installCrd(server, parse(readFileSync(path, "utf8")) as Crd);
}

/**
 * Installs a kind, whatever there is of that name, and waits until its objects can be listed. The server lets the first
 * object of a new kind wait for 2 s.
 */
export async function installCrd({ admin }: Server, crd: Crd): Promise<void> {
  const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const { group, names, versions } = crd.spec;
  const made = await admin.request("POST", crds, crd);
  if (made.status === 409) {
    // Another file may have left it in another form.
    const metadata = { annotations: { "causeway.dev/version": null, ...crd.metadata.annotations } };
    const patch = { metadata, spec: crd.spec };
    await admin.request("PATCH", `${crds}/${crd.metadata.name}`, patch, "application/merge-patch+json");
  } else if (made.status !== 201) throw new Error(`${crd.metadata.name} was not accepted: ${made.status}`);
  await eventually(`${crd.metadata.name} to be served`, async () => {
    const { body } = await admin.request<Installed>("GET", `${crds}/${crd.metadata.name}`);
    const conditions = body.status?.conditions ?? [];
    if (!conditions.some(({ type, status }) => type === "Established" && status === "True")) return false;
    const lists = versions.map(({ name }) => admin.request("GET", `/apis/${group}/${name}/${names.plural}?limit=1`));
    return (await Promise.all(lists)).every(({ status }) => status === 200);
  });
}

/** Makes a namespace, if it is not there. None is ever deleted: without a controller a deletion never ends. */
export async function ensureNamespace({ admin }: Server, name: string): Promise<void> {
  await admin.ensure("/api/v1/namespaces", { metadata: { name } });
}

/** Brings a server up if a test left it down, and removes what tests make; kinds and namespaces stay. */
export async function resetServer(server: Server): Promise<void> {
  if (server.pid() === undefined) await server.start();
  else server.resume();
  const { body } = await server.admin.request<List>("GET", "/api/v1/namespaces");
  const namespaces = body.items.map(({ metadata }) => metadata.name).filter((name) => !name.startsWith("kube-"));
  const paths = [...clusterWide, ...namespaces.flatMap((name) => namespaced.map((kind) => kind.replace("*", name)))];
  await Promise.all(paths.map((path) => empty(server.admin, path)));
}

// What the server makes for itself bears this label, or lives in a namespace whose name begins with kube-.
const notItsOwn = "?labelSelector=kubernetes.io/bootstrapping!=rbac-defaults";
const clusterWide = [
  "/api/v1/nodes",
  "/apis/kilo.squat.ai/v1alpha1/peers",
  `/apis/rbac.authorization.k8s.io/v1/clusterroles${notItsOwn}`,
  `/apis/rbac.authorization.k8s.io/v1/clusterrolebindings${notItsOwn}`,
];
const namespaced = [
  "/apis/kilo.squat.ai/v1alpha1/namespaces/*/clustermeshes",
  "/api/v1/namespaces/*/secrets",
  "/api/v1/namespaces/*/configmaps",
  "/api/v1/namespaces/*/events",
  "/api/v1/namespaces/*/serviceaccounts",
  "/apis/coordination.k8s.io/v1/namespaces/*/leases",
  "/apis/rbac.authorization.k8s.io/v1/namespaces/*/roles",
  "/apis/rbac.authorization.k8s.io/v1/namespaces/*/rolebindings",
];

type Condition = { readonly type: string; readonly status: string };
type Installed = { readonly status?: { readonly conditions?: readonly Condition[] } };
type List = { readonly items: readonly { readonly metadata: { readonly name: string } }[] };

/** Deletes all objects of a kind. First the deletion, then the finalizers: none can be added to what is being deleted. */
async function empty(admin: ServerClient, path: string): Promise<void> {
  const [collection = ""] = path.split("?");
  await eventually(`${path} to be empty`, async () => {
    const { status } = await admin.request("DELETE", path);
    if (status === 404) return true; // the kind is not installed
    const { status: listed, body } = await admin.request<List>("GET", path);
    if (listed !== 200) return false; // a kind whose definition has just changed is not served for a moment
    const finalize = ({ metadata }: List["items"][number]) =>
      admin.request(
        "PATCH",
        `${collection}/${metadata.name}`,
        { metadata: { finalizers: null } },
        "application/merge-patch+json",
      );
    await Promise.all(body.items.map(finalize));
    return body.items.length === 0;
  });
}
