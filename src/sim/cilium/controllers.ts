// What runs on a cluster beside its agents: Cilium's operator, which says of a policy whether it can be used, a cloud that
// gives addresses to Services, and what keeps their endpoints.

import { fieldsOf } from "../../core/json.ts";
import type { Clock } from "../../kube/runtime.ts";
import type { Change } from "../store.ts";
import type { Fields } from "../value.ts";
import type { CiliumCluster } from "./cluster.ts";
import { clusterwidePolicies, kept, networkPolicies } from "./definitions.ts";
import { workSlice } from "./helm.ts";

const verdictMs = 2_000;
const balancerMs = 4_000;
const sliceMs = 500;

type Ground = Pick<CiliumCluster, "server" | "tryTo" | "balancer" | "installed">;

/** Starts them; each answer ends one. */
export function controllers(cluster: Ground, clock: Clock): readonly (() => void)[] {
  const judged = new Map<string, string>();
  const judge = (plural: string, { key, type, after }: Change): void => {
    const text = JSON.stringify(after["spec"]);
    if (type === "DELETED") judged.delete(`${plural} ${key}`);
    if (type === "DELETED" || judged.get(`${plural} ${key}`) === text) return;
    judged.set(`${plural} ${key}`, text);
    clock.after(verdictMs, () => {
      const lastTransitionTime = new Date(clock.nowMs()).toISOString();
      const valid = { type: "Valid", status: "True", message: "Policy validation succeeded", lastTransitionTime };
      cluster.tryTo("PATCH", `${policyPath(plural, key)}/status`, { status: { conditions: [valid] } });
    });
  };
  const balance = (key: string, type: string, after: Fields): void => {
    const { ingress } = fieldsOf(fieldsOf(after["status"])["loadBalancer"]);
    if (type === "DELETED" || fieldsOf(after["spec"])["type"] !== "LoadBalancer" || ingress !== undefined) return;
    const [namespace = "", name = ""] = key.split("/");
    clock.after(balancerMs, () => giveAddress(cluster, `/api/v1/namespaces/${namespace}/services/${name}`));
  };
  const follow = (key: string, type: string, { spec }: Fields): void => {
    const [namespace = "", name = ""] = key.split("/");
    if (type === "MODIFIED" || fieldsOf(spec)["selector"] === undefined) return;
    const slices = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;
    clock.after(sliceMs, () => {
      if (type === "DELETED") cluster.tryTo("DELETE", `${slices}/${name}-1`);
      else cluster.tryTo("POST", slices, workSlice(namespace, name, cluster.installed.number));
    });
  };
  const { server } = cluster;
  return [
    server.listen(kept.services, ({ key, type, after }) => follow(key, type, after)),
    server.listen(kept.policies, (change) => judge(networkPolicies.plural, change)),
    server.listen(kept.clusterwidePolicies, (change) => judge(clusterwidePolicies.plural, change)),
    server.listen(kept.services, ({ key, type, after }) => balance(key, type, after)),
  ];
}

/** The path of a policy by where it is kept. */
export function policyPath(plural: string, key: string): string {
  const at = key.indexOf("/");
  const namespace = at < 0 ? "" : `/namespaces/${key.slice(0, at)}`;
  return `/apis/cilium.io/v2${namespace}/${plural}/${key.slice(at + 1)}`;
}

/** Gives a Service the address of the cluster's load balancer. */
export function giveAddress(cluster: Ground, path: string): void {
  const ingress = [{ ip: cluster.balancer }];
  cluster.tryTo("PATCH", `${path}/status`, { status: { loadBalancer: { ingress } } });
}
