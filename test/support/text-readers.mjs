// Every reader of text from outside, in one table: what is measured for growth (test/hostile/growth.test.ts) and fuzzed
// (test/fuzz). The readers are those of dist/, as users run them.

import { nodeAnnotations } from "../../dist/api/node.js";
import { readRemotes } from "../../dist/cilium/metrics-text.js";
import { certificateBlocks } from "../../dist/cilium/pem.js";
import { readUsers, withoutUsers } from "../../dist/cilium/remote-users.js";
import { readAuthority, readConnection } from "../../dist/cilium/secret-reader.js";
import { versionOf } from "../../dist/cilium/version.js";
import { formatError } from "../../dist/cli/exit.js";
import { loadWorld } from "../../dist/cli/world-file.js";
import { defaultBudgets, parseBudget } from "../../dist/core/budgets.js";
import { alternativeName, labelValue, peerName } from "../../dist/core/naming.js";
import { parseAddress } from "../../dist/core/net/address.js";
import { parseCidr, parseHostInCidr } from "../../dist/core/net/cidr.js";
import { parseEndpoint } from "../../dist/core/net/endpoint.js";
import { parsePublicKey } from "../../dist/core/net/public-key.js";
import { Redacted } from "../../dist/core/redacted.js";
import { addressesOf } from "../../dist/fleet/kcp.js";
import { failureOf as hubbleFailure, oneLine } from "../../dist/hubble/failure.js";
import { decodeResponse } from "../../dist/hubble/messages.js";
import { requestFor } from "../../dist/hubble/query.js";
import { readNode, readPeer } from "../../dist/kilo/facts.js";
import { readMesh } from "../../dist/kilo/intent.js";
import { readClusterMtu } from "../../dist/kilo/mtu.js";
import { jsonOf, tooHeavy } from "../../dist/kube/json-text.js";
import { accessOf, parseKubeconfig } from "../../dist/kube/kubeconfig.js";
import { joined } from "../../dist/kube/paths.js";
import { failureOf, tidyWith } from "../../dist/kube/status-failure.js";
import { transport } from "../../dist/kube/transport.js";
import { watchStream } from "../../dist/kube/watch-stream.js";
import { ciliumPorts } from "../../dist/operator/cilium-ports.js";
import { readHosts, readSearchList } from "../../dist/operator/names.js";
import { createSecrets } from "../../dist/operator/runtime.js";
import { readElements } from "../../dist/pki/der.js";
import { inspectCertificates, keyMatches } from "../../dist/pki/inspect.js";
import { readPem } from "../../dist/pki/pem.js";
import { readPrivateKey } from "../../dist/pki/private-key.js";
import { authority, exampleText } from "./examples.mjs";

const base64 = (text) => Buffer.from(text).toString("base64");
const tidy = tidyWith((text) => text);
const wellFormed = (text) => text.replaceAll(/\p{Cs}/gu, "x");
const clock = { nowMs: () => 0, monotonicMs: () => 0, sleep: () => Promise.resolve(), after: () => () => undefined };
const secrets = createSecrets();
secrets.register("a-token-of-somebody");

const kubeconfigOf = (cluster, user = { token: "t" }) => ({
  cluster: { server: "https://host", ...cluster },
  user: { ...user },
  namespace: undefined,
});
const annotationKeys = Object.values(nodeAnnotations).filter((key) => key !== nodeAnnotations.discoveredEndpoints);
const nodeWith = (annotations) => ({ metadata: { name: "n1", annotations } });
const endpointOf = (text) => ({ dnsOrIP: { dns: text, ip: text }, port: 1 });
const peer = { metadata: { name: "p" }, spec: { publicKey: "", allowedIPs: [] } };
const flow = {
  source: { namespace: "a", labels: {} },
  destination: { namespace: "a", labels: {} },
  ports: [],
  protocols: [],
  sinceMs: 0,
  numberMax: 1,
};

/** What a watch says of these pieces of its body. */
export function streamed(chunks) {
  const stream = watchStream(() => undefined, { ...defaultBudgets, "watch-line-bytes": 8 * 1024 * 1024 }, tidy);
  for (const chunk of chunks) {
    const failure = stream.take(chunk);
    if (failure !== undefined) return failure;
  }
  return stream.end();
}

const pieces = (text) =>
  Buffer.from(text)
    .toString("latin1")
    .match(/[^]{1,64}/g)
    ?.map((part) => Buffer.from(part, "latin1")) ?? [];

/** Bytes as the characters of the same numbers, so that a text can stand for any bytes. */
const bytesOf = (text) => Buffer.from(text, "latin1");
const derOf = (pem) => Buffer.from(pem.replaceAll(/-----[^-]*-----|\s/g, ""), "base64").toString("latin1");
const pemOf = (label, der) => `-----BEGIN ${label}-----\n${bytesOf(der).toString("base64")}\n-----END ${label}-----\n`;

const addresses = ["10.4.0.1", "fd00::1", "2001:db8:0:0:1::1", "::ffff:192.0.2.1", "fe80::1%eth0"];
const ranges = ["10.2.0.0/16", "fd00:10::/64", "0.0.0.0/0", "192.0.2.1/32", "2001:db8::/128"];
const endpoints = ["192.0.2.1:51820", "[2001:db8::1]:51820", "vpn.example.org:51820", "node-1.example.:1"];
const names = ["edge-1", "cluster-ffm-1.example.org", "a--b", "x".repeat(70), "N_1"];
const keys = ["AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=", "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI="];
const servers = ["https://192.0.2.1:6443", "https://[2001:db8::1]/path", "https://api.example.org/clusters/a"];
const annotations = [...ranges, ...addresses, ...endpoints, ...keys, "10.4.0.1/24", "full", "25", "1447200000"];
const pems = [authority.certPem, authority.keyPem, `${authority.certPem}${authority.certPem}`];
const watchLines = [
  '{"type":"ADDED","object":{"kind":"Node","metadata":{"name":"n1","resourceVersion":"12"}}}\n',
  '{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"13"}}}\n{"type":"DELETED","object":{}}\n',
  '{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version"}}\n',
];
const statuses = [
  '{"kind":"Status","code":403,"reason":"Forbidden","message":"nodes is forbidden: User \\"x\\" cannot list"}',
  "<html><body>502 Bad Gateway</body></html>",
];
const metrics = [
  'cilium_kvstoremesh_remote_cluster_failures{source_cluster="west",target_cluster="east"} 0\n',
  'cilium_kvstoremesh_remote_cluster_readiness_status{target_cluster="east"} 1\n# HELP x y\n',
];
const users = ["users:\n- name: remote-east\n  role: remote\n- name: local\n  role: local\n"];
const discovered = [`{"${keys[0]}":{"IP":"192.0.2.1","Port":51820}}`, `{"${keys[1]}":{"IP":"2001:db8::1","Port":1}}`];

/**
 * Each: its name, how it reads, and texts that it takes, or nearly. `kept` if what it answers with is what was written:
 * that is cleaned where it is shown, which the plans in object-readers.mjs are judged by.
 */
export const textReaders = [
  { name: "parseEndpoint", read: parseEndpoint, examples: endpoints },
  { name: "parseEndpoint with a port", read: (text) => parseEndpoint(`${text}:51820`), examples: addresses },
  { name: "parseCidr", read: parseCidr, examples: ranges },
  { name: "parseCidr with bits", read: (text) => parseCidr(`${text}/24`), examples: addresses },
  { name: "parseHostInCidr", read: (text) => parseHostInCidr(`${text}/24`), examples: addresses },
  { name: "parseAddress", read: parseAddress, examples: addresses },
  { name: "parsePublicKey", read: parsePublicKey, examples: keys },
  { name: "peerName", read: (text) => peerName("mesh", "edge", text), examples: names },
  { name: "alternativeName", read: (text) => alternativeName(text, text), examples: names, kept: true },
  { name: "labelValue", read: labelValue, examples: names },
  { name: "parseBudget", read: parseBudget, examples: ["objects.nodes=10000", "facts-bytes=64Mi"] },
  {
    name: "a server in a kubeconfig",
    read: (text) => accessOf(kubeconfigOf({ server: `https://host/${text}` }), {}),
    examples: ["clusters/a", "a%20b"],
  },
  {
    name: "a host in a kubeconfig",
    read: (text) => accessOf(kubeconfigOf({ server: `https://${text}` }), {}),
    examples: [...endpoints, ...names],
  },
  {
    name: "a server name in a kubeconfig",
    read: (text) => accessOf(kubeconfigOf({ "tls-server-name": text }), {}),
    examples: names,
  },
  {
    name: "a CA in a kubeconfig",
    read: (text) => accessOf(kubeconfigOf({ "certificate-authority-data": base64(text) }), {}),
    examples: pems,
    kept: true,
  },
  {
    name: "a CA that is not base64",
    read: (text) => accessOf(kubeconfigOf({ "certificate-authority-data": text }), {}),
    examples: pems.map(base64),
    kept: true,
  },
  {
    name: "a token in a kubeconfig",
    read: (text) => accessOf(kubeconfigOf({}, { token: text }), {}),
    examples: ["eyJhbGciOiJub25lIn0.e30.", "abcdef.0123456789abcdef"],
  },
  {
    name: "a namespace in a kubeconfig",
    read: (text) => accessOf({ ...kubeconfigOf({}), namespace: text }, {}),
    examples: names,
  },
  {
    name: "a client certificate in a kubeconfig",
    read: (text) =>
      accessOf(kubeconfigOf({}, { "client-certificate-data": base64(text), "client-key-data": "AA==" }), {}),
    examples: pems,
    kept: true,
  },
  {
    name: "a client key in a kubeconfig",
    read: (text) => {
      const user = { "client-certificate-data": base64(authority.certPem), "client-key-data": base64(text) };
      return accessOf(kubeconfigOf({}, user), {});
    },
    examples: pems,
    kept: true,
  },
  { name: "a kubeconfig", read: parseKubeconfig, examples: [exampleText.kubeconfig], kept: true },
  {
    name: "a path of a server",
    read: (text) => {
      const server = `https://127.0.0.1/${encodeURI(wellFormed(text))}`;
      transport({ server, token: new Redacted("t"), fingerprint: server, notes: [] }, clock);
    },
    examples: ["clusters/a", "a//b"],
  },
  { name: "a path", read: (text) => joined(["api", text]), examples: names },
  {
    name: "an address of a virtual workspace",
    read: (text) => addressesOf({ status: { endpoints: [{ url: `https://h/${text}` }, { url: text }] } }, undefined),
    examples: servers,
  },
  {
    name: "the annotations of a Node",
    read: (text) => readNode(nodeWith(Object.fromEntries(annotationKeys.map((key) => [key, text])))),
    examples: annotations,
    kept: true,
  },
  { name: "the name of a Node", read: (text) => readNode({ metadata: { name: text } }), examples: names, kept: true },
  {
    name: "the name of a Peer",
    read: (text) => readPeer({ ...peer, metadata: { name: text } }),
    examples: names,
    kept: true,
  },
  {
    name: "a Peer",
    read: (text) => readPeer({ ...peer, spec: { publicKey: text, allowedIPs: [text], endpoint: endpointOf(text) } }),
    examples: annotations,
    kept: true,
  },
  {
    name: "a ClusterMesh",
    read: (text) => readMesh({ metadata: { name: text, namespace: text }, spec: { clusters: [{ name: text }] } }),
    examples: names,
    kept: true,
  },
  {
    name: "packet sizes",
    read: (text) =>
      readClusterMtu([{ kind: "ConfigMap", metadata: { name: "kilo" }, data: { "cni-conf.json": text } }]),
    examples: ['{"cniVersion":"0.4.0","plugins":[{"type":"bridge","mtu":1420}]}'],
  },
  {
    name: "discovered endpoints",
    read: (text) => readNode(nodeWith({ [nodeAnnotations.discoveredEndpoints]: text })),
    examples: discovered,
    kept: true,
  },
  { name: "readPem", read: readPem, examples: pems, kept: true },
  { name: "inspectCertificates", read: inspectCertificates, examples: pems, kept: true },
  {
    name: "the bytes of a certificate",
    read: (text) => inspectCertificates(pemOf("CERTIFICATE", text)),
    examples: [derOf(authority.certPem)],
    kept: true,
  },
  {
    name: "a block with a label",
    read: (text) => inspectCertificates(`-----BEGIN ${text}-----\n`),
    examples: ["CERTIFICATE", "TRUSTED CERTIFICATE"],
  },
  { name: "keyMatches", read: (text) => keyMatches(authority.certPem, text), examples: pems },
  { name: "readPrivateKey", read: readPrivateKey, examples: [authority.keyPem] },
  {
    name: "the bytes of a private key",
    read: (text) => readPrivateKey(pemOf("PRIVATE KEY", text)),
    examples: [derOf(authority.keyPem)],
  },
  { name: "certificateBlocks", read: certificateBlocks, examples: pems, kept: true },
  { name: "readElements", read: (text) => readElements(bytesOf(text)), examples: [derOf(authority.certPem)] },
  { name: "lines of a watch", read: (text) => streamed([Buffer.from(text)]), examples: watchLines },
  { name: "a line of a watch in pieces", read: (text) => streamed(pieces(text)), examples: watchLines },
  {
    name: "an event of a watch",
    read: (text) =>
      streamed([Buffer.from(`${JSON.stringify({ type: "ERROR", object: { code: 410, message: text } })}\n`)]),
    examples: ["too old resource version: 1 (2)"],
  },
  {
    name: "an answer before it is parsed",
    read: (text) => tooHeavy(Buffer.from(text), defaultBudgets) ?? (jsonOf(text) === undefined ? "none" : "JSON"),
    examples: [...watchLines, ...statuses],
  },
  {
    name: "the body of a failure",
    read: (text) => failureOf({ kind: "response", status: 500, headers: {}, body: Buffer.from(text) }, tidy, 0),
    examples: statuses,
  },
  {
    name: "Retry-After",
    read: (text) =>
      failureOf({ kind: "response", status: 429, headers: { "retry-after": text }, body: Buffer.from("") }, tidy, 0),
    examples: ["30", "Wed, 18 Nov 2026 08:00:00 GMT"],
  },
  { name: "readRemotes", read: (text) => readRemotes(text, "kvstoremesh"), examples: metrics, kept: true },
  {
    name: "the labels of a metric",
    read: (text) => readRemotes(`cilium_kvstoremesh_remote_cluster_failures{${text}} 1`, "kvstoremesh"),
    examples: ['source_cluster="west",target_cluster="east"'],
    kept: true,
  },
  { name: "readUsers", read: readUsers, examples: users, kept: true },
  {
    name: "readUsers after its head",
    read: (text) => withoutUsers(`users:\n- name: ${text}\n  role: ${text}`, new Set(["x"])),
    examples: names,
    kept: true,
  },
  { name: "versionOf", read: versionOf, examples: ["quay.io/cilium/cilium:v1.20.1@sha256:00", "cilium:1.19.6-rc.1"] },
  {
    name: "an authority",
    read: (text) => readAuthority({ data: { "ca.crt": base64(text), "ca.key": base64(text) } }, ciliumPorts),
    examples: pems,
    kept: true,
  },
  {
    name: "the key of an authority",
    read: (text) =>
      readAuthority({ data: { "ca.crt": base64(authority.certPem), "ca.key": base64(text) } }, ciliumPorts),
    examples: pems,
    kept: true,
  },
  {
    name: "a connection",
    read: (text) =>
      readConnection({ metadata: {}, data: { west: base64(`endpoints:\n- ${text}`) } }, "clustermesh", ciliumPorts),
    examples: [...servers, "https://west.mesh.cilium.io:2379\ntrusted-ca-file: /a/b.crt\n"],
    kept: true,
  },
  {
    name: "a failure of Hubble",
    read: (text) => hubbleFailure(14, text),
    examples: ["Failed to connect", "has expired"],
  },
  { name: "a text of Hubble", read: oneLine, examples: ["No connection established. Last error: a"] },
  {
    name: "an answer of Hubble",
    read: (text) => decodeResponse(bytesOf(text)),
    examples: ["\n\u0004\n\u0002ab"],
    kept: true,
  },
  {
    name: "labels for Hubble",
    read: (text) => requestFor({ ...flow, source: { namespace: text, labels: { [text]: text } } }),
    examples: names,
    kept: true,
  },
  {
    name: "a key of a label for Hubble",
    read: (text) => requestFor({ ...flow, source: { namespace: "a", labels: { [text]: text } } }),
    examples: names,
    kept: true,
  },
  {
    name: "a line of the log",
    read: (text) => secrets.scrub(text),
    examples: ["token a-token-of-somebody"],
    kept: true,
  },
  { name: "a hosts file", read: readHosts, examples: ["127.0.0.1 localhost\n192.0.2.1 a.example b # c\n"], kept: true },
  {
    name: "a search list",
    read: readSearchList,
    examples: ["search a.example b.example\noptions ndots:5\n"],
    kept: true,
  },
  {
    name: "a world file",
    read: async (text) => {
      const world = await loadWorld(["-"], () => Promise.resolve(text));
      return world.ok ? "" : formatError(world.error);
    },
    examples: [exampleText.world],
    lines: true,
  },
];
