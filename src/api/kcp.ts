import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { type CustomResourceDefinition, ciliumCrds } from "./crd.ts";
import { kubernetesClusterKind } from "./kubernetes-cluster.ts";
import type { StructuralSchema } from "./structural.ts";

// What kcp needs to serve our kinds in the workspaces of tenants, made from the same definitions as the CRDs.

/** The name of the APIExport that serves our kinds. */
export const networkingExportName = "edge-portal-networking";

/** Stands where the identity of the fleet's APIExport belongs: it differs from one kcp to the next. */
export const fleetIdentityPlaceholder = "FLEET_IDENTITY_HASH";

/** Stands where the path of the workspace that holds the APIExport belongs. */
export const exportPathPlaceholder = "EXPORT_WORKSPACE_PATH";

/** The form of one kind, as kcp keeps it. It can never be changed, so its name changes with what it holds. */
export type ApiResourceSchema = {
  readonly apiVersion: "apis.kcp.io/v1alpha1";
  readonly kind: "APIResourceSchema";
  readonly metadata: { readonly name: string };
  readonly spec: Omit<CustomResourceDefinition["spec"], "versions"> & {
    readonly versions: readonly (Omit<CustomResourceDefinition["spec"]["versions"][0], "schema"> & {
      readonly schema: StructuralSchema;
    })[];
  };
};

/** What a provider asks of a tenant beside the objects of its own kinds. */
export type PermissionClaim = {
  readonly group: string;
  readonly resource: string;
  readonly identityHash?: string;
  readonly verbs: readonly string[];
};

/** Our kinds as APIResourceSchemas, in the order of `ciliumKinds`. */
export function apiResourceSchemas(): readonly ApiResourceSchema[] {
  return ciliumCrds().map((definition) => {
    const { versions, ...spec } = definition.spec;
    const whole = {
      ...spec,
      versions: versions.map(({ schema, ...version }) => ({ ...version, schema: schema.openAPIV3Schema })),
    };
    const hash = bytesToHex(sha256(utf8ToBytes(JSON.stringify(whole)))).slice(0, 10);
    return {
      apiVersion: "apis.kcp.io/v1alpha1",
      kind: "APIResourceSchema",
      metadata: { name: `${versions[0].name}-${hash}.${definition.metadata.name}` },
      spec: whole,
    };
  });
}

// A tenant accepts these one by one; what is not accepted is not served. Events have two groups and kcp serves only
// those that are claimed, but it marks every event as one of the core group: only there can one be found again.
const permissionClaims: readonly PermissionClaim[] = [
  {
    group: kubernetesClusterKind.group,
    resource: kubernetesClusterKind.plural,
    identityHash: fleetIdentityPlaceholder,
    verbs: ["get", "list", "watch"],
  },
  { group: "", resource: "events", verbs: ["create", "patch"] },
  { group: "events.k8s.io", resource: "events", verbs: ["create"] },
];

/** The APIExport, with a placeholder for the identity of the fleet's. */
export function networkingExport(): object {
  return {
    apiVersion: "apis.kcp.io/v1alpha2",
    kind: "APIExport",
    metadata: { name: networkingExportName },
    spec: {
      resources: apiResourceSchemas().map(({ metadata, spec }) => ({
        group: spec.group,
        name: spec.names.plural,
        schema: metadata.name,
        storage: { crd: {} },
      })),
      permissionClaims,
    },
  };
}

/** The APIBinding of a tenant that accepts what the export claims, with placeholders. */
export function networkingBinding(): object {
  return {
    apiVersion: "apis.kcp.io/v1alpha2",
    kind: "APIBinding",
    metadata: { name: networkingExportName },
    spec: {
      reference: { export: { path: exportPathPlaceholder, name: networkingExportName } },
      permissionClaims: permissionClaims.map((claim) => ({
        ...claim,
        selector: { matchAll: true },
        state: "Accepted",
      })),
    },
  };
}
