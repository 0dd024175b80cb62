// The three objects of the old provider's README, and how a tenant applies and removes them.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gone, reaches } from "./cilium-real-lab.ts";
import type { StoredIntent, Tenant, TenantKind } from "./kcp-tenancy.ts";

const sample = (name: string): string => readFileSync(join(import.meta.dirname, `../../samples/${name}.yaml`), "utf8");
const samples = {
  mesh: { kind: "ClusterMeshBinding", name: "edge-mesh-eu", text: sample("mesh-binding") },
  service: { kind: "GlobalService", name: "nginx-global", text: sample("global-service") },
  intent: { kind: "ConnectivityIntent", name: "frontend-to-backend", text: sample("connectivity-intent") },
} as const satisfies Readonly<Record<string, { kind: TenantKind; name: string; text: string }>>;

/** One of the three. */
export type Sample = keyof typeof samples;

/** Applies the samples, for the clusters they name or for others, and waits until they are what they should be. */
export async function reachAll(
  tenant: Tenant,
  named = (text: string) => text,
): Promise<Readonly<Record<Sample, StoredIntent>>> {
  for (const { text } of Object.values(samples)) await tenant.apply(named(text));
  return {
    mesh: await reaches(tenant, "ClusterMeshBinding", "edge-mesh-eu", "Connected"),
    service: await reaches(tenant, "GlobalService", "nginx-global", "Exported"),
    intent: await reaches(tenant, "ConnectivityIntent", "frontend-to-backend", "Applied"),
  };
}

/** Removes them one after the other. */
export async function removeAll(tenant: Tenant, order: readonly Sample[]): Promise<void> {
  for (const each of order) {
    const { kind, name } = samples[each];
    await tenant.remove(kind, name);
    await gone(tenant, kind, name);
  }
}
