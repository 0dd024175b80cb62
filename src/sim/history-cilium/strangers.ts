// What others do on a cluster with Cilium: administrators who have peers, users, annotations and policies of their own,
// people who change ours, and tenants who forge what we remember.

import { fieldsOf } from "../../core/json.ts";
import type { Clock } from "../../kube/runtime.ts";
import type { CiliumBox } from "../cilium/box.ts";
import type { CiliumCluster } from "../cilium/cluster.ts";
import { policyPath } from "../cilium/controllers.ts";
import { clusterwidePolicies, kept, networkPolicies } from "../cilium/definitions.ts";
import { ciliumNamespace, names, workService } from "../cilium/helm.ts";
import type { Tampering } from "./story.ts";

const core = `/api/v1/namespaces/${ciliumNamespace}`;
const global = "service.cilium.io/global";

/** What strangers need of the stage. */
export type StrangerOptions = {
  readonly box: Pick<CiliumBox, "ownerOf">;
  readonly clock: Pick<Clock, "after">;
  /** A tenant says of something on its cluster that it is ours: what becomes of it is its own fault. */
  readonly onForged: (cluster: string, storage: string, key: string, path: string) => void;
};

/** A patch that takes every label of ours away. */
const noLabels = {
  "app.kubernetes.io/managed-by": null,
  "causeway.dev/instance": null,
  "causeway.dev/intent": null,
};

const isOurs = (labels: unknown): boolean =>
  fieldsOf(labels)["app.kubernetes.io/managed-by"] === "causeway" &&
  fieldsOf(labels)["causeway.dev/instance"] !== "another";

/** Everybody but the operator. */
export class Strangers {
  readonly #options: StrangerOptions;
  readonly #clock: Pick<Clock, "after">;
  #strangers = 0;

  constructor(options: StrangerOptions) {
    this.#options = options;
    this.#clock = options.clock;
  }

  /** What an administrator had before we came: a peer, a user, and a policy. */
  settle(cluster: CiliumCluster): void {
    this.addPeer(cluster);
    if (cluster.installed.authMode !== "legacy") this.addUser(cluster);
    this.writePolicy(cluster, "own");
  }

  /** A peer that is none of ours, in both Secrets. */
  addPeer(cluster: CiliumCluster): void {
    this.#strangers += 1;
    const peer = `ext${this.#strangers}`;
    const text = `endpoints:\n- https://${peer}.example.com:2379\n`;
    const entries = {
      [peer]: text,
      [`${peer}.etcd-client.crt`]: `certificate of ${peer}`,
      [`${peer}.etcd-client.key`]: `key of ${peer}`,
    };
    const data = Object.fromEntries(
      Object.entries(entries).map(([key, value]) => [key, Buffer.from(value).toString("base64")]),
    );
    for (const name of [names.kvstoremesh, names.clustermesh]) {
      const { status } = cluster.tryTo("PATCH", `${core}/secrets/${name}`, { data });
      if (status === 404) cluster.ask("POST", `${core}/secrets`, { metadata: { name }, data });
    }
  }

  /** A user of a peer that is none of ours. */
  addUser(cluster: CiliumCluster): void {
    this.#strangers += 1;
    const { data } = cluster.stored(kept.configMaps, names.users) ?? {};
    const before = fieldsOf(data)["users.yaml"];
    const listed = typeof before === "string" && before !== "users: []\n" ? before : "users:\n";
    const text = `${listed}- name: remote-ext${this.#strangers}\n  role: remote\n`;
    const { status } = cluster.tryTo("PATCH", `${core}/configmaps/${names.users}`, { data: { "users.yaml": text } });
    if (status !== 404) return;
    cluster.ask("POST", `${core}/configmaps`, { metadata: { name: names.users }, data: { "users.yaml": text } });
  }

  /** Somebody notes something on every Service. */
  annotate(cluster: CiliumCluster, forMs: number): void {
    this.#strangers += 1;
    const key = `example.com/note-${this.#strangers}`;
    const write = (value: string | null): void => {
      for (const path of servicePaths) cluster.tryTo("PATCH", path, { metadata: { annotations: { [key]: value } } });
    };
    write("x");
    this.#clock.after(forMs, () => write(null));
  }

  /** A policy of somebody else's; perhaps of another Causeway, under marks like ours. */
  writePolicy(cluster: CiliumCluster, label: "own" | "another Causeway's"): void {
    this.#strangers += 1;
    const marks = {
      "app.kubernetes.io/managed-by": "causeway",
      "causeway.dev/instance": "another",
      "causeway.dev/intent": "x",
    };
    const metadata = { name: `stranger-${this.#strangers}`, labels: label === "own" ? {} : marks };
    const spec = { endpointSelector: { matchLabels: { app: "web" } }, ingress: [{ fromEntities: ["cluster"] }] };
    const object = { apiVersion: "cilium.io/v2", kind: networkPolicies.kind, metadata, spec };
    cluster.tryTo("POST", `/apis/cilium.io/v2/namespaces/shop/${networkPolicies.plural}`, object);
    const wide = { ...object, kind: clusterwidePolicies.kind };
    cluster.tryTo("POST", `/apis/cilium.io/v2/${clusterwidePolicies.plural}`, wide);
  }

  /** A Service goes, and comes back without what was noted on it. */
  deleteService(cluster: CiliumCluster, forMs: number): void {
    cluster.tryTo("DELETE", `/api/v1/namespaces/shop/services/web`);
    this.#clock.after(forMs, () => {
      const service = workService("shop", "web", cluster.installed.number, {});
      cluster.tryTo("POST", "/api/v1/namespaces/shop/services", service);
    });
  }

  /** Somebody changes what is ours. */
  tamper(cluster: CiliumCluster, what: Tampering): void {
    switch (what) {
      case "entry deleted":
      case "entry edited": {
        const data = fieldsOf(cluster.stored(kept.secrets, names.kvstoremesh)?.["data"]);
        const [first] = Object.keys(data).filter((key) => !key.startsWith("ext") && !key.includes(".etcd-client"));
        if (first === undefined) return;
        const value =
          what === "entry deleted" ? null : Buffer.from("endpoints:\n- https://192.0.2.1:2379\n").toString("base64");
        cluster.tryTo("PATCH", `${core}/secrets/${names.kvstoremesh}`, { data: { [first]: value } });
        return;
      }
      case "annotation removed":
      case "annotation edited": {
        const annotations = { [global]: what === "annotation removed" ? null : "false" };
        for (const path of servicePaths) {
          const { body } = cluster.tryTo("GET", path);
          const noted = fieldsOf(fieldsOf(fieldsOf(body)["metadata"])["annotations"]);
          if (noted[global] === "true") cluster.tryTo("PATCH", path, { metadata: { annotations } });
        }
        return;
      }
      case "Service unlabelled":
        for (const object of cluster.server.objects(kept.services)) {
          const { name, namespace, labels } = fieldsOf(object["metadata"]);
          if (!isOurs(labels)) continue;
          const path = `/api/v1/namespaces/${String(namespace)}/services/${String(name)}`;
          cluster.tryTo("PATCH", path, { metadata: { labels: noLabels } });
        }
        return;
      case "policy widened":
      case "policy deleted":
      case "policy unlabelled":
        for (const [storage, { plural }] of [
          [kept.policies, networkPolicies],
          [kept.clusterwidePolicies, clusterwidePolicies],
        ] as const) {
          for (const object of cluster.server.objects(storage)) {
            const { name, namespace, labels } = fieldsOf(object["metadata"]);
            if (!isOurs(labels)) continue;
            const path = policyPath(
              plural,
              typeof namespace === "string" ? `${namespace}/${String(name)}` : String(name),
            );
            if (what === "policy deleted") cluster.tryTo("DELETE", path);
            else if (what === "policy unlabelled") cluster.tryTo("PATCH", path, { metadata: { labels: noLabels } });
            else cluster.tryTo("PATCH", path, { spec: { ingress: [{ fromEntities: ["all"] }] } });
          }
        }
    }
  }

  /** A tenant writes onto objects of its own cluster what only we would: that they are somebody's. */
  forge(cluster: CiliumCluster): void {
    const { body } = cluster.tryTo("GET", `${core}/secrets/${names.kvstoremesh}`);
    const { annotations } = fieldsOf(fieldsOf(body)["metadata"]);
    for (const [name, value] of Object.entries(fieldsOf(annotations))) {
      if (!name.startsWith("causeway.dev/shares-")) continue;
      const intent = `ClusterMeshBinding/${this.#options.box.ownerOf(cluster.name)}/default/none`;
      const record = { ...fieldsOf(parsed(value)), [forgedPeer]: { for: [intent], was: null, set: "*" } };
      this.#options.onForged(
        cluster.name,
        kept.secrets,
        `${ciliumNamespace}/${names.kvstoremesh}`,
        `data.${forgedPeer}`,
      );
      const forged = { [name]: JSON.stringify(record) };
      cluster.tryTo("PATCH", `${core}/secrets/${names.kvstoremesh}`, { metadata: { annotations: forged } });
    }
  }
}

const forgedPeer = "ext1";

function parsed(value: unknown): unknown {
  try {
    return JSON.parse(String(value));
  } catch {
    return {}; // a record that somebody spoilt before
  }
}

const servicePaths: readonly string[] = ["shop", "back"].flatMap((namespace) =>
  ["web", "api"].map((name) => `/api/v1/namespaces/${namespace}/services/${name}`),
);
