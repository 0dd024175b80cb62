// Certificates that say who signed them and whose key they have, without any cryptography: what planning does with
// certificates does not depend on how they are made.

import { createHash } from "node:crypto";
import { Redacted } from "../../src/core/redacted.ts";
import { err, ok } from "../../src/core/result.ts";
import type { CertificateFacts } from "../../src/cilium/facts.ts";
import type { CiliumPorts } from "../../src/cilium/ports.ts";

export const day = 86_400_000;

type Toy = {
  readonly cn: string;
  readonly key: string;
  readonly issuerKey: string;
  readonly issuerCn: string;
  readonly from: number;
  readonly to: number;
  readonly ca: boolean;
  readonly dns: readonly string[];
  readonly ips: readonly string[];
  readonly use: "client" | "server" | "ca";
};

export type ToyPair = { readonly cert: string; readonly key: string };

const pem = (label: string, text: string): string => {
  const body = Buffer.from(text)
    .toString("base64")
    .match(/.{1,64}/g)
    ?.join("\n");
  return `-----BEGIN ${label}-----\n${body}\n-----END ${label}-----\n`;
};

const bodies = (text: string, label: string): string[] =>
  [...text.matchAll(new RegExp(`-----BEGIN ${label}-----([^-]*)-----END`, "g"))].map((match) =>
    Buffer.from(match[1] ?? "", "base64").toString(),
  );

const toys = (text: string): Toy[] => bodies(text, "CERTIFICATE").map((body) => JSON.parse(body) as Toy);
const keyIn = (text: string): string => bodies(text, "PRIVATE KEY")[0] ?? "";

let count = 0;

/** An authority that signs itself. */
export function toyCa(cn: string, from: number, to: number): ToyPair {
  count += 1;
  const key = `secret-key-${count}-of-${cn}`;
  const cert = { cn, key, issuerKey: key, issuerCn: cn, from, to, ca: true, dns: [], ips: [], use: "ca" } satisfies Toy;
  return { cert: pem("CERTIFICATE", JSON.stringify(publicly(cert))), key: pem("PRIVATE KEY", key) };
}

/** A certificate that an authority signs. */
export function toyLeaf(
  ca: ToyPair,
  cn: string,
  from: number,
  to: number,
  more: { use?: "client" | "server"; dns?: readonly string[]; ips?: readonly string[] } = {},
): ToyPair {
  count += 1;
  const key = `secret-key-${count}-of-${cn}`;
  const [issuer] = toys(ca.cert);
  const cert: Toy = {
    cn,
    key,
    issuerKey: "",
    issuerCn: issuer?.cn ?? "",
    from,
    to,
    ca: false,
    dns: more.dns ?? [],
    ips: more.ips ?? [],
    use: more.use ?? "client",
  };
  const signed = { ...publicly(cert), issuerKey: issuer?.key ?? "" };
  return { cert: pem("CERTIFICATE", JSON.stringify(signed)), key: pem("PRIVATE KEY", key) };
}

/** In a certificate a key is only named by its hash. */
const publicly = (toy: Toy): Toy => ({ ...toy, key: digest(toy.key), issuerKey: digest(toy.issuerKey) });
const digest = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 16);

const factsOf = (toy: Toy): CertificateFacts => ({
  commonName: toy.cn,
  issuerName: toy.issuerCn,
  notBeforeMs: toy.from,
  notAfterMs: toy.to,
  isCa: toy.ca,
  fingerprint: createHash("sha256").update(JSON.stringify(toy)).digest("hex"),
  dnsNames: toy.dns,
  ipAddresses: toy.ips,
});

/** The ports of the provider over such certificates. */
export const toyPorts: CiliumPorts = {
  decode: (base64) => {
    const text = Buffer.from(base64, "base64").toString();
    return Buffer.from(text).toString("base64") === base64 ? text : undefined;
  },
  inspect: (text) => toys(text).map(factsOf),
  chainProblem: (leafPem, caPem, nowMs, purpose) => {
    const [leaf] = toys(leafPem);
    if (leaf === undefined) return { kind: "garbled", detail: "no certificate" };
    const issuers = toys(caPem).filter((ca) => ca.key === leaf.issuerKey && ca.ca);
    if (issuers.length === 0) return { kind: "untrusted", detail: "nobody in the bundle signed it" };
    if (issuers.every((ca) => nowMs >= ca.to)) return { kind: "caExpired", detail: "the authority is expired" };
    if (nowMs >= leaf.to) return { kind: "expired", detail: "it is expired" };
    if (nowMs < leaf.from) return { kind: "notYetValid", detail: "it is not valid yet" };
    return leaf.use === purpose ? undefined : { kind: "wrongUsage", detail: `it is for a ${leaf.use}` };
  },
  keyMatches: (certPem, keyPem) => toys(certPem)[0]?.key === digest(keyIn(keyPem)),
  issueProblem: ({ caCertPem, caKeyPem }) =>
    toys(caCertPem)[0]?.key === digest(keyIn(caKeyPem.expose())) ? undefined : { detail: "the key is another one's" },
  issue: ({ commonName, caCertPem, caKeyPem, notBeforeMs, notAfterMs }) => {
    const key = caKeyPem.expose();
    if (toys(caCertPem)[0]?.key !== digest(keyIn(key))) return err({ detail: "the key is another one's" });
    const made = toyLeaf({ cert: caCertPem, key }, commonName, notBeforeMs, notAfterMs);
    return ok({ certPem: made.cert, keyPem: new Redacted(made.key) });
  },
};
