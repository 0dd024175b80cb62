import { describe, expect, test } from "vitest";
import { recordAnnotation } from "../../../src/cilium/share.ts";
import {
  binding,
  clusterOf,
  codesOf,
  connectionsOf,
  converge,
  get,
  joined,
  type Lab,
  type LabCluster,
  makeLab,
  operationsOf,
  planOf,
  put,
  putSecret,
  report,
  secretTexts,
} from "../../support/cilium-lab.ts";

const id = "ClusterMeshBinding/team/m";
const remote = "cilium-kvstoremesh";

/** A lab whose binding joins a and b, and in which somebody put something for b into a Secret of a. */
function foreign(secret: string, texts: Readonly<Record<string, string>>, agentMetrics = false): Lab {
  const lab = makeLab([{ name: "a", agentMetrics }, { name: "b" }]);
  putSecret(clusterOf(lab, "a"), secret, texts);
  lab.intents.push(binding(["a", "b"]));
  return lab;
}

const agentPods = ({ objects }: LabCluster): readonly string[] =>
  [...objects.values()].flatMap(({ kind, metadata }) =>
    kind === "Pod" && metadata.labels["k8s-app"] === "cilium" ? [metadata.name as string] : [],
  );

/** What is said of somebody's entries on cluster a. */
const foundAt = (lab: Lab) =>
  planOf(lab).diagnostics.filter(({ code, subject }) => code === "ForeignPeer" && subject.cluster === "a");

const conditionOf = (lab: Lab, type: string) =>
  report(lab, planOf(lab))
    .get(id)!
    .conditions.find((each) => each.type === type)!;

describe("files of somebody's without an entry", () => {
  for (const file of ["b.etcd-client.key", "b.etcd-client.crt", "b.etcd-client-ca.crt"]) {
    test(`${file} is neither overwritten nor lost, and it is said what to remove`, async () => {
      const lab = foreign(remote, { [file]: "theirs", lab: "endpoints:\n- https://192.0.2.9:2379\n" });
      const before = secretTexts(clusterOf(lab, "a"), remote);
      await converge(lab);
      expect(secretTexts(clusterOf(lab, "a"), remote)).toEqual(before);
      const [found] = foundAt(lab);
      expect(found?.message).toBe(`Secret ${remote} has files for "b" that are not ours; they are left as they are`);
      expect(found?.fix).toBe(
        `remove all of it to have it written from here: kubectl -n kube-system patch secret ${remote} --type merge -p '{"data":{"${file}":null}}' on cluster a`,
      );
      expect(conditionOf(lab, "MeshConnected")).toMatchObject({ status: "False", reason: "ForeignPeer" });
      lab.intents[0]!["metadata"].deletionTimestamp = "2026-03-01T00:00:00Z";
      await converge(lab);
      expect(secretTexts(clusterOf(lab, "a"), remote)).toEqual(before);
    });
  }

  test("whoever follows the advice is connected", async () => {
    const texts = { b: "endpoints:\n- https://192.0.2.9:2379\n", "b.etcd-client.key": "theirs" };
    const lab = foreign(remote, texts);
    await converge(lab);
    const [found] = foundAt(lab);
    const patch = JSON.parse(/-p '(.*)' on cluster/.exec(found?.fix ?? "")?.[1] ?? "") as { data: object };
    expect(Object.keys(patch.data)).toEqual(Object.keys(texts));
    const secret = structuredClone(get(clusterOf(lab, "a"), "Secret", remote)!);
    for (const key of Object.keys(patch.data)) delete secret["data"][key];
    put(clusterOf(lab, "a"), secret);
    await converge(lab);
    expect(foundAt(lab)).toEqual([]);
    expect(connectionsOf(lab, clusterOf(lab, "a"))).toEqual([["b", true]]);
  });

  test("what is ours beside somebody's entry stays while the link is wanted", async () => {
    const lab = await joined();
    const a = clusterOf(lab, "a");
    const secret = structuredClone(get(a, "Secret", remote)!);
    delete secret["metadata"].annotations;
    put(a, secret);
    expect(operationsOf(planOf(lab))).toEqual([]);
    expect(foundAt(lab)).toHaveLength(1);
  });
});

describe("an entry of somebody's for the agents, where KVStoreMesh runs", () => {
  const elsewhere = "endpoints:\n- https://198.51.100.99:2379\n";
  const agents = "cilium-clustermesh";

  test("is left alone and reported on", async () => {
    const lab = foreign(agents, { b: elsewhere });
    await converge(lab);
    expect(secretTexts(clusterOf(lab, "a"), agents)).toEqual({ b: elsewhere });
    expect(foundAt(lab).map(({ message }) => message)).toEqual([
      `Secret ${agents} has an entry for "b" that is not ours; it is left as it is`,
    ]);
    expect(connectionsOf(lab, clusterOf(lab, "a"))).toEqual([["b", true]]);
  });

  test("that leads past KVStoreMesh: only the agents know whether they are connected", async () => {
    const lab = foreign(agents, { b: elsewhere });
    await converge(lab);
    expect(planOf(lab).meshes.get(id)!.phase).not.toBe("Connected");
    expect(conditionOf(lab, "MeshConnected")).toMatchObject({ status: "Unknown", reason: "AgentMetricsOff" });
  });

  test("that leads past KVStoreMesh: what the agents say is what counts", async () => {
    const lab = foreign(agents, { b: elsewhere }, true);
    await converge(lab);
    expect(conditionOf(lab, "MeshConnected")).toMatchObject({ status: "True" });
    for (const name of agentPods(clusterOf(lab, "a"))) clusterOf(lab, "a").behind.add(name);
    expect(conditionOf(lab, "MeshConnected")).toMatchObject({ status: "False", reason: "NotReady" });
  });

  test("that leads to the cluster's own etcd: what KVStoreMesh says holds for the agents", async () => {
    for (const host of [
      "clustermesh-apiserver.kube-system.svc",
      "clustermesh-apiserver.kube-system.svc.cluster.local",
    ]) {
      const lab = foreign(agents, { b: `endpoints:\n- https://${host}:2379\n` });
      await converge(lab);
      expect(foundAt(lab)).toHaveLength(1);
      expect(conditionOf(lab, "MeshConnected")).toMatchObject({ status: "True" });
    }
  });
});

describe("a record that only has the hash of what was there", () => {
  const hashed = async (): Promise<Lab> => {
    const lab = await joined();
    const a = clusterOf(lab, "a");
    const secret = structuredClone(get(a, "Secret", remote)!);
    const annotation = recordAnnotation("lab");
    const record = JSON.parse(secret["metadata"].annotations[annotation]) as Record<string, object>;
    record["b.etcd-client.key"] = { ...record["b.etcd-client.key"], was: "sha256:def16a9818207fe0" };
    secret["metadata"].annotations[annotation] = JSON.stringify(record);
    put(a, secret);
    return lab;
  };

  test("our key goes with the link, and it is said that theirs cannot be put back", async () => {
    const lab = await hashed();
    expect(codesOf(planOf(lab))).not.toContain("KeyNotRestored");
    lab.intents[0]!["metadata"].deletionTimestamp = "2026-03-01T00:00:00Z";
    const plan = planOf(lab);
    const found = plan.diagnostics.filter(({ code }) => code === "KeyNotRestored");
    expect(found).toHaveLength(1);
    expect(found[0]).toMatchObject({ mesh: id, subject: { cluster: "a" } });
    expect(found[0]?.message).toContain('"b.etcd-client.key"');
    await converge(lab);
    expect(secretTexts(clusterOf(lab, "a"), remote)).toEqual({});
  });

  test("also where others have entries in the same Secret", async () => {
    const lab = await hashed();
    const a = clusterOf(lab, "a");
    const secret = structuredClone(get(a, "Secret", remote)!);
    secret["data"].lab = Buffer.from("theirs").toString("base64");
    put(a, secret);
    lab.intents[0]!["metadata"].deletionTimestamp = "2026-03-01T00:00:00Z";
    await converge(lab);
    expect(secretTexts(a, remote)).toEqual({ lab: "theirs" });
  });
});
