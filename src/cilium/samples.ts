// What the Cilium provider measures, under names that a portal's data pipeline can rely on. All names are here, so that
// they can be changed in one place. No label names a pod, a Service or a node.

import type { Sample } from "../core/provider.ts";
import { lastSeen } from "../core/world.ts";
import type { FlowVerdict } from "./facts.ts";
import type { MeshedIntent } from "./kind-gate.ts";
import type { Outcome } from "./kind-status.ts";
import type { Link } from "./links.ts";
import type { MeshState } from "./mesh-state.ts";

const ofIntent = ["workspace", "namespace", "name", "mesh"] as const;
const ofCluster = [...ofIntent, "cluster"] as const;

/** Every series of the provider: its help text and the names of its labels. All are gauges. */
export const sampleTable = {
  edge_mesh_binding_phase: {
    labels: ["workspace", "namespace", "mesh", "phase"],
    help: "1 for the phase that the ClusterMeshBinding is in; there is no series for the others",
  },
  edge_mesh_cluster_connected: {
    labels: ["workspace", "namespace", "mesh", "cluster"],
    help: "Whether the cluster is connected with all its peers, by its own word: 1 yes, 0 no, -1 nobody can know",
  },
  edge_mesh_link_ready: {
    labels: ["workspace", "namespace", "mesh", "from", "to"],
    help: "Whether a cluster has what the other one publishes: 1 yes, 0 no, -1 nobody can know",
  },
  edge_mesh_nodes_ready: {
    labels: ["workspace", "namespace", "mesh", "cluster"],
    help: "Nodes of the cluster whose Cilium agent is ready",
  },
  edge_mesh_nodes_total: {
    labels: ["workspace", "namespace", "mesh", "cluster"],
    help: "Nodes of the cluster that run a Cilium agent",
  },
  edge_globalservice_exported: {
    labels: ofCluster,
    help: "Whether the Services that the GlobalService selects are global on the cluster: 1 yes, 0 no",
  },
  edge_globalservice_endpoints: {
    labels: ofCluster,
    help: "Ready endpoints of the cluster's own behind the Services that the GlobalService selects",
  },
  edge_connectivityintent_applied: {
    labels: ofCluster,
    help: "Whether the policies of the ConnectivityIntent are in force on the cluster: 1 yes, 0 no, -1 nobody can know",
  },
  edge_connectivityintent_reachable: {
    labels: ofIntent,
    help: "The Reachable condition of a ConnectivityIntent with a probe: 1 as intended, 0 not, -1 nobody can know",
  },
  edge_exposedservice_ready: {
    labels: ofCluster,
    help: "Whether the ExposedService has an address and backends on the cluster: 1 yes, 0 no",
  },
} as const satisfies Readonly<Record<string, { readonly labels: readonly string[]; readonly help: string }>>;

/** The name of a series. */
export type SampleName = keyof typeof sampleTable;

type Labels<Name extends SampleName> = Readonly<Record<(typeof sampleTable)[Name]["labels"][number], string>>;

const sample = <Name extends SampleName>(name: Name, labels: Labels<Name>, value: number): Sample => ({
  name,
  labels,
  value,
});

/** What is measured of a mesh and of its links. */
export function bindingSamples({ binding, phase, members }: MeshState, links: readonly Link[]): readonly Sample[] {
  const { workspace = "", namespace, name } = binding.place;
  const of = { workspace, namespace, mesh: name };
  return [
    sample("edge_mesh_binding_phase", { ...of, phase }, 1),
    ...members.flatMap(({ name: cluster, view }) => {
      const { agent } = lastSeen(view.observed) ?? {};
      const own = links.filter(({ from }) => from === cluster).map(({ controlPlane }) => controlPlane);
      const connected = own.includes("Down") ? 0 : own.length > 0 && own.every((state) => state === "Up") ? 1 : -1;
      return [
        sample("edge_mesh_cluster_connected", { ...of, cluster }, connected),
        ...(agent === undefined
          ? []
          : [
              sample("edge_mesh_nodes_ready", { ...of, cluster }, agent.ready),
              sample("edge_mesh_nodes_total", { ...of, cluster }, agent.desired),
            ]),
      ];
    }),
    ...links.map(({ from, to, controlPlane }) =>
      sample("edge_mesh_link_ready", { ...of, from, to }, { Up: 1, Down: 0, Unknown: -1 }[controlPlane]),
    ),
  ];
}

/** What is measured of a GlobalService. */
export function globalServiceSamples(
  intent: MeshedIntent,
  outcomes: readonly Outcome[],
  summary: readonly { readonly clusterName: string; readonly endpoints: number }[],
): readonly Sample[] {
  const of = labelsOf(intent);
  return [
    ...outcomes.map(({ cluster, state }) =>
      sample("edge_globalservice_exported", { ...of, cluster }, state === "done" ? 1 : 0),
    ),
    ...summary.map(({ clusterName, endpoints }) =>
      sample("edge_globalservice_endpoints", { ...of, cluster: clusterName }, endpoints),
    ),
  ];
}

/** What is measured of a ConnectivityIntent; `verdict` is what its probe found, if it has one. */
export function connectivitySamples(
  intent: MeshedIntent,
  outcomes: readonly Outcome[],
  verdict: FlowVerdict | undefined,
): readonly Sample[] {
  const of = labelsOf(intent);
  return [
    ...outcomes.map(({ cluster, state }) => {
      const value = { done: 1, pending: 0, failed: 0, unknown: -1 }[state];
      return sample("edge_connectivityintent_applied", { ...of, cluster }, value);
    }),
    ...(verdict === undefined
      ? []
      : [sample("edge_connectivityintent_reachable", of, { True: 1, False: 0, Unknown: -1 }[verdict.status])]),
  ];
}

/** What is measured of an ExposedService. */
export function exposureSamples(
  intent: MeshedIntent,
  endpoints: readonly { readonly clusterName: string; readonly ready: boolean }[],
): readonly Sample[] {
  const of = labelsOf(intent);
  const clusters = new Map<string, boolean>();
  for (const { clusterName, ready } of endpoints)
    clusters.set(clusterName, ready || clusters.get(clusterName) === true);
  return [...clusters].map(([cluster, ready]) =>
    sample("edge_exposedservice_ready", { ...of, cluster }, ready ? 1 : 0),
  );
}

function labelsOf({ place, invalid, object }: MeshedIntent): Labels<"edge_connectivityintent_reachable"> {
  const { workspace = "", namespace, name } = place;
  return { workspace, namespace, name, mesh: invalid === undefined ? object.spec.meshRef.name : "" };
}
