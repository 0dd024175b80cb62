// Secrets of Cilium's own → facts. What is secret stays sealed; everything else of a Secret is forgotten at once, also
// the copy of it that kubectl leaves in an annotation.

import { fieldsOf, textOf } from "../core/json.ts";
import { Redacted } from "../core/redacted.ts";
import type { CiliumFact } from "./fact.ts";
import type { CertificateFacts, ConnectionEntry, CredentialFacts } from "./facts.ts";
import { sharedMetadata } from "./object-reader.ts";
import type { CertificatePurpose, CiliumPorts } from "./ports.ts";
import { sealedHash } from "./share.ts";

/** The keys under which a peer's credentials are in a connection Secret. */
export const credentialKeys = (peer: string) => ({
  ca: `${peer}.etcd-client-ca.crt`,
  cert: `${peer}.etcd-client.crt`,
  key: `${peer}.etcd-client.key`,
});

/** Reads Secret cilium-ca, as Helm, certgen or cert-manager writes it. */
export function readAuthority(raw: unknown, ports: CiliumPorts): CiliumFact {
  const data = decoded(raw, ports);
  const cert = data.get("ca.crt") ?? data.get("tls.crt");
  const key = data.get("ca.key") ?? data.get("tls.key");
  if (cert === undefined) return { type: "credential", of: "authority", credential: undefined };
  const certificates = ports.inspect(cert);
  const credential = credentialOf({ cert, key, ca: cert }, certificates, certificates);
  return { type: "credential", of: "authority", credential: { ...credential, problem: authorityProblem() } };

  function authorityProblem(): CredentialFacts["problem"] {
    const [first] = certificates;
    if (first === undefined) return { kind: "garbled", detail: "there is no certificate in it" };
    if (key === undefined) return { kind: "keyMissing", detail: "its key is not in the Secret" };
    const { notBeforeMs, notAfterMs } = first;
    const order = { commonName: "remote", caCertPem: cert ?? "", caKeyPem: new Redacted(key), notBeforeMs, notAfterMs };
    const problem = ports.issueProblem(order);
    return problem === undefined ? undefined : { kind: "cannotSign", detail: problem.detail };
  }
}

/** Reads a Secret of type kubernetes.io/tls. */
export function readCredential(raw: unknown, of: "remote" | "server", ports: CiliumPorts): CiliumFact {
  const data = decoded(raw, ports);
  const cert = data.get("tls.crt");
  if (cert === undefined) return { type: "credential", of, credential: undefined };
  const parts = { cert, key: data.get("tls.key"), ca: data.get("ca.crt") ?? "" };
  return { type: "credential", of, credential: checked(parts, of === "remote" ? "client" : "server", ports) };
}

/** Reads a connection Secret: what is there by hash, the certificates in it, and where its entries lead. */
export function readConnection(raw: unknown, of: "clustermesh" | "kvstoremesh", ports: CiliumPorts): CiliumFact {
  const data = decoded(raw, ports);
  const certificates = new Map<string, CredentialFacts>();
  const entries = new Map<string, ConnectionEntry>();
  for (const [key, text] of data) {
    if (text.length > entryTextMax || !text.includes("endpoints:")) continue;
    entries.set(key, readEntry(text));
    const keys = credentialKeys(key);
    const cert = data.get(keys.cert);
    const parts = { cert: cert ?? "", key: data.get(keys.key), ca: data.get(keys.ca) ?? "" };
    if (cert !== undefined || parts.ca !== "") certificates.set(key, checked(parts, undefined, ports));
  }
  const values = Object.fromEntries([...data].map(([key, text]) => [key, sealedHash(text)]));
  return { type: "connection", of, shared: { ...sharedMetadata(raw), values }, certificates, entries };
}

const entryTextMax = 16_384;

function readEntry(text: string): ConnectionEntry {
  const endpoints: string[] = [];
  const aliases: string[] = [];
  for (const line of text.split("\n")) {
    const endpoint = /^\s*-\s*["']?(https?:\/\/[^\s"']+)["']?\s*$/.exec(line)?.[1];
    if (endpoint !== undefined) endpoints.push(endpoint);
    const ip = /^\s*-\s*["']?([0-9a-fA-F.:]+)["']?\s*$/.exec(line)?.[1];
    if (ip !== undefined) aliases.push(ip);
  }
  return { endpoints, aliases };
}

/** What is said of a credential of which only the Secret is known. */
const notKnown = { kind: "unknown", detail: "what is in the Secret is not known" } as const;

/** Whether a credential is there, and nobody can say what it is. */
export const isUnknown = (credential: CredentialFacts | undefined): boolean =>
  credential?.problem?.kind === notKnown.kind;

/** The same Secret of which only that it is there is known. */
export function unknownContent(fact: CiliumFact): CiliumFact {
  if (fact.type === "connection") return { ...fact, shared: { ...fact.shared, isContentUnknown: true } };
  if (fact.type !== "credential") return fact;
  const credential = credentialOf({ cert: "", key: undefined, ca: "" }, [], []);
  return { ...fact, credential: { ...credential, problem: notKnown } };
}

type Parts = { readonly cert: string; readonly key: string | undefined; readonly ca: string };

/** Without a purpose the chain is not looked at: what is beside the certificate is for another one. */
function checked(parts: Parts, purpose: CertificatePurpose | undefined, ports: CiliumPorts): CredentialFacts {
  const certificates = ports.inspect(parts.cert);
  const credential = credentialOf(parts, certificates, ports.inspect(parts.ca));
  return { ...credential, problem: credentialProblem(credential, parts, purpose, ports) };
}

/** What is wrong with a credential at any time; that its time is over is for the planner to say, who knows the time. */
function credentialProblem(
  { certificates, authorities }: Pick<CredentialFacts, "certificates" | "authorities">,
  { cert, key, ca }: Parts,
  purpose: CertificatePurpose | undefined,
  ports: CiliumPorts,
): CredentialFacts["problem"] {
  const [leaf] = certificates;
  if (leaf === undefined) return { kind: "garbled", detail: "there is no certificate in it" };
  if (key === undefined) return { kind: "keyMissing", detail: "its key is not in the Secret" };
  if (!ports.keyMatches(cert, key)) return { kind: "keyMismatch", detail: "its key belongs to another certificate" };
  if (authorities.length === 0 || purpose === undefined) return undefined;
  const atMs = authorities.reduce((latest, { notBeforeMs }) => Math.max(latest, notBeforeMs), leaf.notBeforeMs);
  const problem = ports.chainProblem(cert, ca, atMs, purpose);
  return problem === undefined || timeProblems.has(problem.kind) ? undefined : problem;
}

const timeProblems: ReadonlySet<string> = new Set(["expired", "caExpired", "notYetValid"]);

function credentialOf(
  { cert, key, ca }: Parts,
  certificates: readonly CertificateFacts[],
  authorities: readonly CertificateFacts[],
): Omit<CredentialFacts, "problem"> & { readonly problem: undefined } {
  return {
    certificates,
    authorities,
    problem: undefined,
    certPem: new Redacted(cert),
    keyPem: key === undefined ? undefined : new Redacted(key),
    caPem: new Redacted(ca),
    hashes: { cert: sealedHash(cert), key: sealedHash(key ?? ""), ca: sealedHash(ca) },
  };
}

const dataKeysMax = 4096;

function decoded(raw: unknown, ports: CiliumPorts): ReadonlyMap<string, string> {
  const data = new Map<string, string>();
  for (const [key, value] of Object.entries(fieldsOf(fieldsOf(raw)["data"])).slice(0, dataKeysMax)) {
    const base64 = textOf(value) ?? "";
    data.set(key, ports.decode(base64) ?? `base64:${base64}`);
  }
  return data;
}
