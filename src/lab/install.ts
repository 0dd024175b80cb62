// What an administrator does before a mesh: definitions, roles, tokens, kubeconfigs. The roles are the committed ones.

import { readFileSync } from "node:fs";
import { parseAllDocuments } from "yaml";
import type { ServerClient } from "../../test/support/server-client.mjs";
import { peerDefinition } from "../sim/peer-definition.ts";
import { waitFor } from "./unmet.ts";

/** A Secret on any cluster that a scenario binds a token to; it ends with the scenario. */
export const revocable = { name: "revocable", secretsPath: "/api/v1/namespaces/kube-system/secrets" };

/** The namespace of the operator: its Lease is there. */
export const operatorNamespace = "causeway-system";

/** The namespace of meshes and kubeconfigs. */
export const meshNamespace = "kilo-system";

type ApiObject = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly rules?: readonly object[];
};

const plurals: Readonly<Record<string, string>> = {
  Namespace: "namespaces",
  ServiceAccount: "serviceaccounts",
  Secret: "secrets",
  ClusterRole: "clusterroles",
  ClusterRoleBinding: "clusterrolebindings",
  Role: "roles",
  RoleBinding: "rolebindings",
  CustomResourceDefinition: "customresourcedefinitions",
};

/** What Kilo's own manifests grant its agents. */
const agentRole = [
  { apiGroups: [""], resources: ["nodes"], verbs: ["get", "list", "patch", "watch"] },
  { apiGroups: ["kilo.squat.ai"], resources: ["peers"], verbs: ["list", "watch"] },
  { apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"], verbs: ["get"] },
];

/** Prepares a cluster for Kilo; answers with the token of its agents. */
export async function installKilo(admin: ServerClient): Promise<string> {
  await apply(admin, peerDefinition);
  const rbac = "rbac.authorization.k8s.io";
  const name = "kilo";
  await apply(admin, { apiVersion: "v1", kind: "Namespace", metadata: { name: "kilo" } });
  await apply(admin, { apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace: "kilo" } });
  await apply(admin, { apiVersion: `${rbac}/v1`, kind: "ClusterRole", metadata: { name }, rules: agentRole });
  const binding = {
    apiVersion: `${rbac}/v1`,
    kind: "ClusterRoleBinding",
    metadata: { name },
    roleRef: { apiGroup: rbac, kind: "ClusterRole", name },
    subjects: [{ kind: "ServiceAccount", name, namespace: "kilo" }],
  };
  await apply(admin, binding);
  await served(admin, "/apis/kilo.squat.ai/v1alpha1/peers");
  return await tokenFor(admin, "kilo", name);
}

/** Prepares the cluster that holds the meshes; answers with the operator's token. `secrets` are what it may read. */
export async function installLocal(admin: ServerClient, secrets: readonly string[]): Promise<string> {
  await apply(admin, { apiVersion: "v1", kind: "Namespace", metadata: { name: meshNamespace } });
  for (const object of [
    ...documents("crds/kilo.squat.ai_clustermeshes.yaml"),
    ...documents("deploy/rbac/local.yaml"),
  ]) {
    await apply(admin, object);
  }
  for (const { rules, ...object } of documents("deploy/rbac/secrets.yaml")) {
    const metadata = { ...object.metadata, namespace: meshNamespace };
    const named = rules?.map((rule) => ({ ...rule, resourceNames: secrets }));
    await apply(admin, { ...object, metadata, ...(named === undefined ? {} : { rules: named }) });
  }
  await served(admin, "/apis/kilo.squat.ai/v1alpha1/clustermeshes");
  return await tokenFor(admin, operatorNamespace, "causeway");
}

/** Prepares any other cluster; answers with the operator's token. */
export async function installRemote(admin: ServerClient): Promise<string> {
  for (const object of documents("deploy/rbac/remote.yaml")) await apply(admin, object);
  return await tokenFor(admin, "kube-system", "causeway");
}

/** A new token of a ServiceAccount, good for a day, or as long as the object exists that it is bound to. */
export async function tokenFor(
  admin: ServerClient,
  namespace: string,
  account: string,
  boundObjectRef?: object,
): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`;
  const request = {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    spec: { expirationSeconds: 86_400, ...(boundObjectRef === undefined ? {} : { boundObjectRef }) },
  };
  const { status, body } = await admin.request<{ status: { token: string } }>("POST", path, request);
  if (status !== 201) throw new Error(`no token for ${namespace}/${account}: ${JSON.stringify(body)}`);
  return body.status.token;
}

function documents(file: string): readonly ApiObject[] {
  const text = readFileSync(new URL(`../../${file}`, import.meta.url), "utf8");
  return parseAllDocuments(text).map((document) => document.toJS() as ApiObject);
}

async function apply(admin: ServerClient, object: ApiObject): Promise<void> {
  const { apiVersion, kind, metadata } = object;
  const group = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const place = metadata.namespace === undefined ? group : `${group}/namespaces/${metadata.namespace}`;
  const path = `${place}/${plurals[kind]}/${metadata.name}?fieldManager=lab&force=true`;
  const { status, body } = await admin.request("PATCH", path, object, "application/apply-patch+yaml");
  if (status >= 300) throw new Error(`${kind} ${metadata.name}: ${status} ${JSON.stringify(body)}`);
}

async function served(admin: ServerClient, path: string): Promise<void> {
  await waitFor(`${path} to be served`, async () => (await admin.request("GET", path)).status === 200);
}
