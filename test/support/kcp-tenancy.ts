// Tenants behind one kcp, as deploy/kcp/README.md sets them up: a workspace with the exports, and a workspace for each
// tenant that has bound them. The operator's user may do exactly what deploy/kcp/rbac.yaml says.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "./eventually.ts";
import type { Kcp, KcpObject, Workspace } from "./kcp.ts";

const boundMsMax = 60_000;
const networking = "networking.edge-portal.eu/v1alpha1";
const platform = "platform.edge-portal.eu/v1alpha1";

/** The kinds that tenants write, with where they are served. */
const kinds = {
  ClusterMeshBinding: `${networking}/clustermeshbindings`,
  GlobalService: `${networking}/globalservices`,
  ConnectivityIntent: `${networking}/connectivityintents`,
  ExposedService: `${networking}/exposedservices`,
  Fabric: `${networking}/fabrics`,
  KubernetesCluster: `${platform}/kubernetesclusters`,
} as const;

/** A kind that a tenant writes. */
export type TenantKind = keyof typeof kinds;

/** A condition of an object. */
export type StoredCondition = {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
};

/** As much of a tenant's object as tests look at. */
export type StoredIntent = {
  readonly metadata: {
    readonly name: string;
    readonly generation: number;
    readonly resourceVersion: string;
    readonly creationTimestamp: string;
    readonly deletionTimestamp?: string;
    readonly finalizers?: readonly string[];
  };
  readonly spec: Readonly<Record<string, unknown>>;
  readonly status?: {
    readonly phase?: string;
    readonly conditions?: readonly StoredCondition[];
    readonly findings?: readonly { readonly code: string; readonly severity: string; readonly message: string }[];
    readonly [field: string]: unknown;
  };
};

/** One tenant, as its own administrator. */
export type Tenant = Workspace & {
  /** Applies objects, YAML or not, in the workspace. */
  readonly apply: (objects: string | readonly KcpObject[]) => Promise<void>;
  readonly get: (kind: TenantKind, name: string) => Promise<StoredIntent | undefined>;
  /** Merges a patch into an object, or into its status. */
  readonly patch: (kind: TenantKind, name: string, patch: object, status?: "status") => Promise<void>;
  /** Asks for the deletion of an object. */
  readonly remove: (kind: TenantKind, name: string) => Promise<void>;
  /** Names of the objects of a kind. */
  readonly list: (kind: TenantKind) => Promise<readonly string[]>;
  /** Takes back the binding of our export, and waits for that. */
  readonly unbind: () => Promise<void>;
};

/** Workspaces that belong together. */
export type Tenancy = {
  /** The workspace that holds the exports. */
  readonly provider: Workspace;
  /** What the operator is given to reach them. */
  readonly operatorKubeconfig: string;
  /** Makes a workspace, with both exports bound. */
  readonly createTenant: (name: string) => Promise<Tenant>;
  /** Deletes the workspace of a tenant, with everything in it; does not wait. */
  readonly deleteTenant: (name: string) => Promise<void>;
};

/** Sets up `<home>:provider`, where `home` is the path of a workspace that is made. */
export async function openTenancy(kcp: Kcp, home: string): Promise<Tenancy> {
  await kcp.createWorkspace(home);
  const provider = await kcp.createWorkspace(`${home}:provider`);
  await kcp.apply(provider.path, fleetExport);
  const exports = `/clusters/${provider.path}/apis/apis.kcp.io/v1alpha2/apiexports`;
  const identity = await eventually("the identity of the fleet's export", async () => {
    const { body } = await kcp.request<Exported>("GET", `${exports}/edge-portal-fleet`);
    return body.status?.identityHash;
  });
  const filled = (file: string): string =>
    readFileSync(join(import.meta.dirname, "../../deploy/kcp", file), "utf8")
      .replaceAll("FLEET_IDENTITY_HASH", identity)
      .replaceAll("EXPORT_WORKSPACE_PATH", provider.path)
      .replaceAll(/^#.*\n/gm, "");
  for (const file of ["apiresourceschemas.yaml", "apiexport.yaml", "rbac.yaml"]) {
    await kcp.apply(provider.path, filled(file));
  }
  return {
    provider,
    operatorKubeconfig: kcp.kubeconfig(provider.path, kcp.operatorToken),
    createTenant: async (name) => {
      const workspace = await kcp.createWorkspace(`${home}:${name}`);
      await kcp.apply(workspace.path, fleetBinding(provider.path));
      await kcp.apply(workspace.path, filled("apibinding.yaml"));
      for (const binding of ["edge-portal-fleet", "edge-portal-networking"]) await bound(kcp, workspace, binding);
      return tenantOf(kcp, workspace);
    },
    deleteTenant: async (name) => {
      await kcp.request("DELETE", `/clusters/${home}/apis/tenancy.kcp.io/v1alpha1/workspaces/${name}`);
    },
  };
}

type Exported = { readonly status?: { readonly identityHash?: string } };
type Bound = { readonly status?: { readonly phase?: string; readonly conditions?: readonly StoredCondition[] } };

const bindings = "/apis/apis.kcp.io/v1alpha2/apibindings";

async function bound(kcp: Kcp, { path }: Workspace, name: string): Promise<void> {
  await eventually(
    `${name} to be bound in ${path}`,
    async () => {
      const { body } = await kcp.request<Bound>("GET", `/clusters/${path}${bindings}/${name}`);
      const { phase, conditions = [] } = body.status ?? {};
      const applied = conditions.find(({ type }) => type === "PermissionClaimsApplied");
      return phase === "Bound" && applied?.status !== "False";
    },
    boundMsMax,
  );
}

function tenantOf(kcp: Kcp, workspace: Workspace): Tenant {
  const collection = (kind: TenantKind): string => {
    const [group = "", version = "", plural = ""] = kinds[kind].split("/");
    return `/clusters/${workspace.path}/apis/${group}/${version}/namespaces/default/${plural}`;
  };
  const must = async (method: string, path: string, body?: object): Promise<void> => {
    const answer = await kcp.request(method, path, body, body === undefined ? undefined : mergePatch);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  };
  return {
    ...workspace,
    apply: (objects) => kcp.apply(workspace.path, objects),
    get: async (kind, name) => {
      const { status, body } = await kcp.request<StoredIntent>("GET", `${collection(kind)}/${name}`);
      if (status !== 200 && status !== 404) throw new Error(`${kind} ${name}: ${status} ${JSON.stringify(body)}`);
      return status === 200 ? body : undefined;
    },
    patch: (kind, name, patch, status) =>
      must("PATCH", `${collection(kind)}/${name}${status === undefined ? "" : "/status"}`, patch),
    remove: (kind, name) => must("DELETE", `${collection(kind)}/${name}`),
    list: async (kind) => {
      const { body } = await kcp.request<{ readonly items?: readonly StoredIntent[] }>("GET", collection(kind));
      return (body.items ?? []).map(({ metadata }) => metadata.name);
    },
    unbind: async () => {
      const path = `/clusters/${workspace.path}${bindings}/edge-portal-networking`;
      await must("DELETE", path);
      await eventually(
        "the binding to be gone",
        async () => (await kcp.request("GET", path)).status === 404,
        boundMsMax,
      );
    },
  };
}

const mergePatch = "application/merge-patch+json";

const open = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
const fleetSchema = { type: "object", properties: { spec: open, status: open } };

// What another provider of the fleet would serve, as far as it matters here.
const fleetExport = `
apiVersion: apis.kcp.io/v1alpha1
kind: APIResourceSchema
metadata: { name: v1.kubernetesclusters.platform.edge-portal.eu }
spec:
  group: platform.edge-portal.eu
  names: { plural: kubernetesclusters, singular: kubernetescluster, kind: KubernetesCluster, listKind: KubernetesClusterList }
  scope: Namespaced
  versions:
  - { name: v1alpha1, served: true, storage: true, subresources: { status: {} }, schema: ${JSON.stringify(fleetSchema)} }
---
apiVersion: apis.kcp.io/v1alpha2
kind: APIExport
metadata: { name: edge-portal-fleet }
spec:
  resources:
  - group: platform.edge-portal.eu
    name: kubernetesclusters
    schema: v1.kubernetesclusters.platform.edge-portal.eu
    storage: { crd: {} }
`;

const fleetBinding = (provider: string): string => `
apiVersion: apis.kcp.io/v1alpha2
kind: APIBinding
metadata: { name: edge-portal-fleet }
spec: { reference: { export: { path: "${provider}", name: edge-portal-fleet } } }
`;
