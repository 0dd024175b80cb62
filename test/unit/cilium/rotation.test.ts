import { expect, test } from "vitest";
import { certificateBlocks } from "../../../src/cilium/pem.ts";
import {
  binding,
  clusterOf,
  codesOf,
  connectionsOf,
  converge,
  get,
  joined,
  type Lab,
  makeLab,
  operationsOf,
  planOf,
  put,
  putLeaves,
  putSecret,
  secretTexts,
  startMs,
} from "../../support/cilium-lab.ts";
import { day, toyCa, toyPorts } from "../../support/toy-pki.ts";

const hour = 3_600_000;

const trusted = (lab: Lab): string[] =>
  certificateBlocks(secretTexts(clusterOf(lab, "a"), "cilium-kvstoremesh")["b.etcd-client-ca.crt"]!).map(
    (block) => toyPorts.inspect(block)[0]!.commonName,
  );
const entry = (lab: Lab): string => secretTexts(clusterOf(lab, "a"), "cilium-kvstoremesh")["b"]!;
const shown = (lab: Lab): string => secretTexts(clusterOf(lab, "a"), "cilium-kvstoremesh")["b.etcd-client.crt"]!;
const isConnected = (lab: Lab): boolean => connectionsOf(lab, clusterOf(lab, "a"))[0]![1];

test("an authority is replaced without a break: both are trusted until the server has shown the new one for an hour", async () => {
  const lab = await joined();
  const b = clusterOf(lab, "b");
  const fresh = toyCa("new CA of b", lab.nowMs, lab.nowMs + 1000 * day);
  const before = entry(lab);

  putSecret(b, "cilium-ca", { "ca.crt": fresh.cert, "ca.key": fresh.key });
  await converge(lab);
  expect(trusted(lab)).toEqual(["new CA of b", "Cilium CA of b"]);
  expect(entry(lab)).not.toBe(before);
  expect(isConnected(lab)).toBe(true);

  putLeaves(b, fresh, lab.nowMs);
  expect(connectionsOf(lab, clusterOf(lab, "a"))).toEqual([["b", false]]);
  await converge(lab);
  expect(trusted(lab)).toEqual(["new CA of b", "Cilium CA of b"]);
  expect(isConnected(lab)).toBe(true);

  lab.nowMs += hour - 1;
  expect(operationsOf(planOf(lab))).toEqual([]);
  lab.nowMs += 1;
  await converge(lab);
  expect(trusted(lab)).toEqual(["new CA of b"]);
  expect(isConnected(lab)).toBe(true);
});

test("a certificate is renewed when thirty days are left: from the authority, if the other side does not renew its own", async () => {
  const lab = await joined();
  const first = shown(lab);
  lab.nowMs = startMs + 335 * day - 30 * day;
  await converge(lab);
  expect(shown(lab)).toBe(first);
  lab.nowMs += 1;
  await converge(lab);
  const issued = shown(lab);
  expect(issued).not.toBe(first);
  expect(toyPorts.inspect(issued)[0]!.commonName).toBe("remote");
  expect(isConnected(lab)).toBe(true);
  lab.nowMs += 300 * day;
  expect(operationsOf(planOf(lab)).filter(({ target }) => target === clusterOf(lab, "a").id)).toEqual([]);
  expect(shown(lab)).toBe(issued);
});

test("a renewed certificate of the other side is copied once ours is due, and not before", async () => {
  const lab = await joined();
  const first = shown(lab);
  lab.nowMs = startMs + 100 * day;
  putLeaves(clusterOf(lab, "b"), clusterOf(lab, "b").ca, lab.nowMs);
  await converge(lab);
  expect(shown(lab)).toBe(first);
  lab.nowMs = startMs + 310 * day;
  await converge(lab);
  expect(shown(lab)).toBe(secretTexts(clusterOf(lab, "b"), "clustermesh-apiserver-remote-cert")["tls.crt"]);
});

test("without a key to sign with, a certificate that runs out is used to its end and told about", async () => {
  const lab = await joined();
  putSecret(clusterOf(lab, "b"), "cilium-ca", { "ca.crt": clusterOf(lab, "b").ca.cert });
  lab.nowMs = startMs + 320 * day;
  expect(codesOf(await converge(lab))).toContain("CertificateExpires");
  lab.nowMs = startMs + 336 * day;
  const plan = await converge(lab);
  expect(codesOf(plan)).toContain("CredentialUnusable");
  expect(shown(lab)).not.toBe("");
});

test("an expired authority blocks what needs it and changes nothing", async () => {
  const lab = await joined();
  const before = secretTexts(clusterOf(lab, "a"), "cilium-kvstoremesh");
  lab.nowMs = startMs + 1001 * day;
  const plan = planOf(lab);
  expect(codesOf(plan)).toContain("AuthorityExpired");
  expect(operationsOf(plan)).toEqual([]);
  expect(secretTexts(clusterOf(lab, "a"), "cilium-kvstoremesh")).toEqual(before);
});

test("no secret is copied when there is none: the link waits, the other direction does not", async () => {
  const lab = makeLab([{ name: "a" }, { name: "b" }]);
  const b = clusterOf(lab, "b");
  b.objects.delete("Secret/kube-system/clustermesh-apiserver-remote-cert");
  putSecret(b, "cilium-ca", { "ca.crt": b.ca.cert });
  lab.intents.push(binding(["a", "b"]));
  const plan = await converge(lab);
  expect(codesOf(plan)).toContain("CredentialUnusable");
  expect(connectionsOf(lab, clusterOf(lab, "a"))).toEqual([]);
  expect(connectionsOf(lab, b)).toEqual([["a", true]]);
  expect(lab.intents[0]!["status"].phase).toBe("Degraded");
});

test("a key that kubectl left in an annotation of a Secret is not kept", async () => {
  const lab = makeLab([{ name: "a" }, { name: "b" }]);
  const a = clusterOf(lab, "a");
  putSecret(
    a,
    "cilium-clustermesh",
    {},
    { annotations: { "kubectl.kubernetes.io/last-applied-configuration": "TOP-SECRET" } },
  );
  lab.intents.push(binding(["a", "b"]));
  expect(JSON.stringify(planOf(lab).targets)).not.toContain("TOP-SECRET");
  put(a, get(a, "Secret", "cilium-clustermesh")!);
});
