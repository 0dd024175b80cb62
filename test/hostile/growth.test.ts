// Every reader of text from outside on what is hardest for it, up to 256 KiB: none costs more than in proportion.

import { describe, expect, test } from "vitest";
import { nodeAnnotations } from "../../src/api/node.ts";
import { readRemotes } from "../../src/cilium/metrics-text.ts";
import { certificateBlocks } from "../../src/cilium/pem.ts";
import { withoutUsers } from "../../src/cilium/remote-users.ts";
import { readConnection } from "../../src/cilium/secret-reader.ts";
import { loadWorld } from "../../src/cli/world-file.ts";
import { readNode, readPeer, sameNode } from "../../src/kilo/facts.ts";
import { accessOf, parseKubeconfig } from "../../src/kube/kubeconfig.ts";
import { ciliumPorts } from "../../src/operator/cilium-ports.ts";
import { inspectCertificates } from "../../src/pki/inspect.ts";
import { makeCertificate } from "../support/certificate.ts";
import { growthProblem, type Hostile } from "../support/growth.mjs";
import { streamed, textReaders } from "../support/text-readers.mjs";

const authority = makeCertificate({ isCa: true, subject: "ca", names: [] });
const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** A text of this length that repeats a part, between a beginning and an end that make the reader try in vain. */
const filled = (part: string, [start, end] = ["", ""]) => {
  return (size: number): string => `${start}${part.repeat(Math.ceil(size / part.length))}${end}`;
};

const numbered = (part: (index: number) => string, [start, end] = ["", ""]) => {
  return (size: number): string => {
    const parts: string[] = [];
    for (let [index, length] = [0, 0]; length < size; index += 1) {
      const text = part(index);
      length += text.length;
      parts.push(text);
    }
    return `${start}${parts.join("")}${end}`;
  };
};

/** Parts that make readers go back and begin again: runs of what a pattern repeats, with an end that it does not take. */
const runs: readonly (readonly [string, (size: number) => string])[] = [
  ["slashes", filled("/", ["/", "x"])],
  ["dashes", filled("-", ["a", "x"])],
  ["dots", filled(".", ["a", "x"])],
  ["labels", filled("a.", ["", "_"])],
  ["letters", filled("a", ["", "!"])],
  ["digits", filled("1", ["", "x"])],
  ["dotted digits", filled("1.", ["", "x"])],
  ["colons", filled(":", ["a", "x"])],
  ["groups", filled("f:", ["", "x"])],
  ["brackets", filled("[", ["", "x"])],
  ["closed brackets", filled("]", ["[", ":1"])],
  ["blanks", filled(" ", ["x", "x"])],
  ["blanks in lines", filled(" \n", ["x", "x"])],
  ["lines", filled("\n", ["x", "x"])],
  ["returns", filled("\r", ["x", "x"])],
  ["quotes", filled('"', ["x", "x"])],
  ["escapes", filled("\\", ["x", "x"])],
  ["controls", filled("\u001b", ["x", "x"])],
  ["halves of surrogates", filled("\ud800", ["x", "x"])],
  ["base64", filled("A", ["", "="])],
  ["marks of PEM", filled("-----BEGIN CERTIFICATE-----\n")],
  ["marks of PEM in a line", filled("-----BEGIN CERTIFICATE-----")],
  ["ends of PEM", filled("-----END CERTIFICATE-----\n", ["-----BEGIN CERTIFICATE-----\n", ""])],
  ["an open key", filled("A", ["-----BEGIN PRIVATE KEY-----\n", "-----END"])],
  ["open keys", filled("-----BEGIN RSA PRIVATE KEY-----\n")],
  ["tokens", filled("eyJ", ["", "."])],
  ["half a token", filled("aaaaaaaa.", ["eyJ", "!"])],
  ["key fields", filled("privatekey=", ["", "!"])],
];

const kubeconfigOf = (cluster: object) => ({
  cluster: { server: "https://host", ...cluster },
  user: { token: "t" },
  namespace: undefined,
});
const nodeWith = (annotations: object) => ({ metadata: { name: "n1", annotations } });
const peer = { metadata: { name: "p" }, spec: { publicKey: "", allowedIPs: [] } };

/** What has a form of its own: many parts instead of long ones. */
const shapes: readonly Hostile[] = [
  ...(
    [
      ["many keys", numbered((index) => `k${index}: 1\n`)],
      ["many anchors", numbered((index) => `k${index}: &a${index} v\n`)],
      ["many aliases", numbered(() => "- *a\n", ["- &a x\n", ""])],
      ["many commas", filled(",", ["[", ""])],
      ["many lists", filled("- ")],
      ["open maps", filled("{a: ")],
      ["open lists", filled("[")],
      ["closed lists", filled("]\n")],
      ["question marks", filled("? ")],
      ["comments", filled("#\n")],
      ["documents", filled("---\n")],
      ["directives", filled("%A\n")],
      ["tags", filled("!!a ")],
      ["indents", numbered((index) => `${" ".repeat(Math.min(index, 200))}a:\n`)],
      ["a folded text", filled("a\n\n", ["a: >\n ", ""])],
      ["a quoted text", filled("\\x41", ['a: "', ""])],
      [
        "many contexts",
        numbered((index) => `- name: c${index}\n  context: {cluster: c, user: u}\n`, ["contexts:\n", ""]),
      ],
      [
        "many clusters",
        numbered((index) => `- name: c${index}\n`, ["apiVersion: causeway.dev/v1alpha1\nkind: World\nclusters:\n", ""]),
      ],
      [
        "fields that it does not know",
        numbered((index) => `f${index}: 1\n`, ["apiVersion: causeway.dev/v1alpha1\nkind: World\nclusters: []\n", ""]),
      ],
      [
        "many worlds",
        numbered((index) => `---\napiVersion: causeway.dev/v1alpha1\nkind: World\nclusters: [{name: c${index}}]\n`),
      ],
    ] as const
  ).flatMap(([name, make]): Hostile[] => [
    { name: `a kubeconfig of ${name}`, make, read: parseKubeconfig },
    { name: `a world file of ${name}`, make, read: (text: string) => loadWorld(["-"], () => Promise.resolve(text)) },
  ]),
  {
    name: "two world files of many clusters",
    make: numbered(
      (index) => `- name: c${index}\n`,
      ["apiVersion: causeway.dev/v1alpha1\nkind: World\nclusters:\n", ""],
    ),
    read: (text: string) => loadWorld(["-", "-"], () => Promise.resolve(text)),
  },
  {
    name: "a Node with many labels",
    make: (size) => ({ metadata: { name: "n", labels: Object.fromEntries(words(size).map((word) => [word, word])) } }),
    read: (raw: object) => {
      const [a, b] = [readNode(raw), readNode(raw)];
      return a.ok && b.ok && sameNode(a.value, b.value);
    },
  },
  {
    name: "a Node with many addresses and ranges",
    make: (size) => ({
      metadata: { name: "n" },
      spec: { podCIDRs: words(size) },
      status: { addresses: words(size).map((address) => ({ type: "InternalIP", address })) },
    }),
    read: readNode,
  },
  {
    name: "many discovered endpoints",
    make: (size) => {
      const entries = words(size).map((word) => [`${word.padEnd(43, "A")}=`, { IP: "192.0.2.1", Port: 1 }]);
      return nodeWith({ [nodeAnnotations.discoveredEndpoints]: JSON.stringify(Object.fromEntries(entries)) });
    },
    read: readNode,
  },
  {
    name: "a Peer with many ranges",
    make: (size) => ({
      ...peer,
      spec: { publicKey: "", allowedIPs: words(size).map((_, at) => `10.0.${at % 256}.0/24`) },
    }),
    read: readPeer,
  },
  {
    name: "a Secret with many connections",
    make: (size) => ({
      metadata: {},
      data: Object.fromEntries(words(size).map((word) => [word, base64("endpoints:\n- https://a")])),
    }),
    read: (raw: object) => readConnection(raw, "clustermesh", ciliumPorts),
  },
  {
    name: "many users",
    make: numbered((index) => `- name: remote-${index}\n  role: remote\n`, ["users:\n", ""]),
    read: (text: string) => withoutUsers(text, new Set(["remote-1"])),
  },
  {
    name: "many remote clusters",
    make: numbered((index) => `cilium_kvstoremesh_remote_cluster_failures{target_cluster="c${index}"} 1\n`),
    read: (text: string) => readRemotes(text, "kvstoremesh"),
  },
  {
    name: "many short events",
    make: (size) => [Buffer.from(filled('{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1"}}}\n')(size))],
    read: streamed,
  },
  {
    name: "a deep event",
    make: (size) => [Buffer.from(`{"type":"ADDED","object":${filled('{"a":')(size)}`), Buffer.from("\n")],
    read: streamed,
  },
  { name: "many certificates", make: filled(authority.certPem), read: inspectCertificates },
  { name: "many certificates in one spelling", make: filled(authority.certPem), read: certificateBlocks },
  {
    name: "a CA of many certificates",
    make: filled(authority.certPem),
    read: (pem: string) => accessOf(kubeconfigOf({ "certificate-authority-data": base64(pem) }), {}),
  },
  {
    name: "a certificate with many names",
    make: (size) => makeCertificate({ names: words(size) }).certPem,
    read: inspectCertificates,
  },
  {
    name: "a certificate with a long name",
    make: (size) => makeCertificate({ subject: "x".repeat(size) }).certPem,
    read: inspectCertificates,
  },
];

function words(size: number): string[] {
  return Array.from({ length: Math.ceil(size / 8) }, (_, index) => `w${String(index).padStart(6, "0")}`);
}

describe("the cost of reading grows no faster than what is read", () => {
  test.each(textReaders)("$name", { timeout: 600_000 }, async ({ name, read }) => {
    const problems: string[] = [];
    for (const [of, make] of runs) {
      const problem = await growthProblem({ name, make, read });
      if (problem !== undefined) problems.push(`${of}: ${problem}`);
    }
    expect(problems).toEqual([]);
  });

  test.each(shapes)("$name", { timeout: 600_000 }, async (hostile) => {
    expect(await growthProblem(hostile)).toBeUndefined();
  });
});
