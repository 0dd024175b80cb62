// What one cluster needs of another to connect with it: whom to trust, and a certificate to show.
//
// Trust. The authority of the other cluster, and until its server has shown a certificate of that authority for a while
// also whoever signs the present one and whomever we trusted before. So an authority is replaced without a break:
//
//   the other cluster has                                  trusted
//   authority old, server signed by old                    old
//   authority new, server signed by old                    new, old
//   authority new, server signed by new a moment ago       new, old
//   authority new, server signed by new for an hour        new
//
// A certificate to show. What is there stays while it is good; then a copy of the one that the other cluster has for
// this purpose, then one that its authority signs for us. What is good for a while yet is better than nothing.

import { Redacted } from "../core/redacted.ts";
import { err, ok, type Result } from "../core/result.ts";
import type { CertificateFacts, CredentialFacts } from "./facts.ts";
import type { Participant } from "./participant.ts";
import { certificateBlocks } from "./pem.ts";
import type { CertificatePurpose, CiliumPorts, IssueOrder } from "./ports.ts";
import { sealedHash } from "./share.ts";

/** How long a server must have had its certificate before the authority of the one before is forgotten. */
export const overlapMs = 3_600_000;

const dayMs = 86_400_000;
const renewalMaxMs = 30 * dayMs;
const leafMs = 365 * dayMs;
/** Valid from yesterday on, so that nobody refuses it because of a clock, ours or its own; never before its authority. */
const backdatedMs = dayMs;
/** What certificates of others may be ahead of our clock. */
const skewMs = 300_000;

/** What is asked about certificates again and again, and answered once. */
export type CertificateMemory = {
  readonly ports: CiliumPorts;
  readonly inspected: Map<string, readonly CertificateFacts[]>;
  readonly blocks: Map<string, readonly string[]>;
  readonly hashes: Map<string, string>;
  readonly chains: Map<string, boolean>;
};

/** Begins to remember. */
export const certificateMemory = (ports: CiliumPorts): CertificateMemory => ({
  ports,
  inspected: new Map(),
  blocks: new Map(),
  hashes: new Map(),
  chains: new Map(),
});

const rememberedMax = 20_000;

function remember<V>(known: Map<string, V>, key: string, make: () => V): V {
  const found = known.get(key);
  if (found !== undefined) return found;
  if (known.size >= rememberedMax) known.clear();
  const made = make();
  known.set(key, made);
  return made;
}

const blocksOf = (pem: string, { blocks }: CertificateMemory): readonly string[] =>
  remember(blocks, pem, () => certificateBlocks(pem));

const hashOf = (text: string, { hashes }: CertificateMemory): string => remember(hashes, text, () => sealedHash(text));

/** Whom to trust as the server of a peer. */
export type Trust = { readonly pem: string; readonly hash: string };

/** The certificate to show to a peer, and how it comes about. */
export type Shown = {
  readonly commonName: string;
  readonly notAfterMs: number | undefined;
  /** It runs out soon, and there is nothing better. */
  readonly isLast: boolean;
  readonly how:
    | { readonly do: "keep"; readonly hashes: { readonly cert: string; readonly key: string } }
    | {
        readonly do: "copy";
        readonly hashes: { readonly cert: string; readonly key: string };
        readonly certPem: Redacted<string>;
        readonly keyPem: Redacted<string>;
      }
    | { readonly do: "issue"; readonly order: IssueOrder; readonly mark: string };
};

/** Why there is nothing that a peer would accept. */
export type NoCredential =
  | { readonly code: "AuthorityExpired"; readonly notAfterMs: number }
  | { readonly code: "CredentialUnusable"; readonly detail: string };

/** Whom to trust as the server of `peer`, given what is trusted there already. */
export function trustOf(
  peer: Participant,
  existing: CredentialFacts | undefined,
  nowMs: number,
  memory: CertificateMemory,
): Result<Trust, NoCredential> {
  const { authority, serverCredential: server, remoteCredential: remote } = peer.facts ?? {};
  const valid = (pem: string | undefined): readonly string[] =>
    blocksOf(pem ?? "", memory).filter((block) => isValid(inspect(block, memory)[0], nowMs));
  const current = valid(authority?.certPem.expose());
  const settled = isSettled(server, current, nowMs, memory);
  const known = settled ? current : [...current, ...valid(server?.caPem.expose())];
  const wanted = known.length > 0 ? known : valid(remote?.caPem.expose());
  if (wanted.length === 0) return err(noAuthority(authority));
  const base = trustFrom(wanted, memory);
  if (settled || existing?.hashes.ca === base.hash) return ok(base);
  return ok(trustFrom([...wanted, ...valid(existing?.caPem.expose())], memory));
}

const trustFrom = (blocks: readonly string[], memory: CertificateMemory): Trust => {
  const pem = [...new Set(blocks)].join("");
  return { pem, hash: hashOf(pem, memory) };
};

function noAuthority(authority: CredentialFacts | undefined): NoCredential {
  const [first] = authority?.certificates ?? [];
  if (first !== undefined) return { code: "AuthorityExpired", notAfterMs: first.notAfterMs };
  return { code: "CredentialUnusable", detail: "there is no authority in cilium-ca or beside its certificates" };
}

/** Whether the server has had a certificate of its present authority for long enough that all its pods show it. */
function isSettled(
  server: CredentialFacts | undefined,
  current: readonly string[],
  nowMs: number,
  memory: CertificateMemory,
): boolean {
  const [leaf] = server?.certificates ?? [];
  if (server === undefined || leaf === undefined || current.length === 0) return false;
  return nowMs - leaf.notBeforeMs >= overlapMs && chains(server, current.join(""), "server", memory);
}

/** The certificate that `own` shows to `peer`, given the one that is there already. */
export function shownTo(
  own: Participant,
  peer: Participant,
  existing: CredentialFacts | undefined,
  nowMs: number,
  memory: CertificateMemory,
): Result<Shown, NoCredential> {
  const { authority, remoteCredential: remote, serverCredential: server } = peer.facts ?? {};
  const accepted = acceptedBy(server, authority, remote);
  // With users of their own for each cluster, the certificate that a cluster has is made out to itself.
  const isPerCluster = remote?.certificates[0]?.commonName.startsWith("remote-") ?? false;
  const wanted = isPerCluster ? `remote-${own.ciliumName ?? ""}` : "remote";
  const copied = remote?.certificates[0]?.commonName;
  const usable = (credential: CredentialFacts | undefined): credential is CredentialFacts =>
    credential !== undefined && isUsable(credential, accepted, nowMs, memory);
  const named = (credential: CredentialFacts, names: readonly (string | undefined)[]): boolean =>
    names.includes(credential.certificates[0]?.commonName);

  const isKept = usable(existing) && named(existing, [wanted, copied]);
  if (isKept && !isDue(existing, nowMs)) return ok(keep(existing, false));
  const isCopied = usable(remote) && remote.keyPem !== undefined;
  if (isCopied && !isDue(remote, nowMs) && named(remote, [wanted])) return ok(copy(remote, false));
  const order = orderOf(wanted, authority, accepted, nowMs, memory);
  if (order !== undefined) return ok(order);
  if (isCopied && (!isDue(remote, nowMs) || !isKept)) return ok(copy(remote, isDue(remote, nowMs)));
  if (isKept) return ok(keep(existing, true));
  return err({ code: "CredentialUnusable", detail: reasonOf(remote, authority, accepted, nowMs, memory) });
}

/** What the peer's etcd accepts certificates of: the authority beside its server's certificate. */
function acceptedBy(...credentials: readonly (CredentialFacts | undefined)[]): string {
  for (const credential of credentials) {
    const pem = credential?.caPem.expose() ?? "";
    if (pem !== "") return pem;
  }
  return "";
}

function orderOf(
  commonName: string,
  authority: CredentialFacts | undefined,
  accepted: string,
  nowMs: number,
  memory: CertificateMemory,
): Shown | undefined {
  const [ca] = authority?.certificates ?? [];
  if (authority?.keyPem === undefined || authority.problem !== undefined || ca === undefined || nowMs === 0) {
    return undefined;
  }
  // A leaf that runs out with its authority before it could be renewed would be made again and again.
  const notAfterMs = Math.min(nowMs + leafMs, ca.notAfterMs);
  if (!isValid(ca, nowMs) || notAfterMs - nowMs < dayMs) return undefined;
  const caCertPem = authority.certPem.expose();
  const blocks = blocksOf(accepted, memory);
  if (blocks.length > 0 && !blocksOf(caCertPem, memory).some((block) => blocks.includes(block))) return undefined;
  const mark = `issue:${commonName}:${ca.fingerprint.slice(0, 16)}`;
  const order = { commonName, caCertPem, caKeyPem: authority.keyPem, notBeforeMs: nowMs - backdatedMs, notAfterMs };
  return { commonName, notAfterMs, isLast: false, how: { do: "issue", order, mark } };
}

const keep = (credential: CredentialFacts, isLast: boolean): Shown => ({
  ...saidOf(credential, isLast),
  how: { do: "keep", hashes: credential.hashes },
});

const copy = (credential: CredentialFacts, isLast: boolean): Shown => ({
  ...saidOf(credential, isLast),
  how: {
    do: "copy",
    hashes: credential.hashes,
    certPem: credential.certPem,
    keyPem: credential.keyPem ?? new Redacted(""),
  },
});

const saidOf = ({ certificates: [leaf] }: CredentialFacts, isLast: boolean) => ({
  commonName: leaf?.commonName ?? "",
  notAfterMs: leaf?.notAfterMs,
  isLast,
});

function isUsable(credential: CredentialFacts, accepted: string, nowMs: number, memory: CertificateMemory): boolean {
  const [leaf] = credential.certificates;
  if (leaf === undefined || credential.problem !== undefined || credential.keyPem === undefined) return false;
  return isValid(leaf, nowMs) && chains(credential, accepted, "client", memory);
}

/** Whether a third of its life, or thirty days, are all that is left. */
function isDue({ certificates: [leaf] }: CredentialFacts, nowMs: number): boolean {
  if (leaf === undefined || nowMs === 0) return false;
  return leaf.notAfterMs - nowMs < Math.min((leaf.notAfterMs - leaf.notBeforeMs) / 3, renewalMaxMs);
}

const isValid = (certificate: CertificateFacts | undefined, nowMs: number): boolean =>
  certificate !== undefined &&
  (nowMs === 0 || (certificate.notBeforeMs - skewMs <= nowMs && nowMs < certificate.notAfterMs));

function reasonOf(
  remote: CredentialFacts | undefined,
  authority: CredentialFacts | undefined,
  accepted: string,
  nowMs: number,
  memory: CertificateMemory,
): string {
  const ofRemote = "clustermesh-apiserver-remote-cert";
  const isTimeless = nowMs === 0 && authority !== undefined && authority.problem === undefined;
  const why =
    (isTimeless ? "what time it is is not known" : authority?.problem?.detail) ??
    (authority === undefined ? "it is not there" : "its authority is not in use");
  const cannot = `cilium-ca cannot make one: ${why}`;
  if (remote === undefined) return `${ofRemote} is not there, and ${cannot}`;
  if (remote.problem !== undefined) return `${ofRemote} cannot be used: ${remote.problem.detail}; and ${cannot}`;
  if (!isValid(remote.certificates[0], nowMs)) return `${ofRemote} is expired or not valid yet, and ${cannot}`;
  if (!chains(remote, accepted, "client", memory)) return `${ofRemote} is signed by another authority, and ${cannot}`;
  return `${ofRemote} is for somebody else, and ${cannot}`;
}

const inspect = (block: string, { ports, inspected }: CertificateMemory): readonly CertificateFacts[] =>
  remember(inspected, block, () => ports.inspect(block));

/** Whether whoever trusts the bundle accepts the certificate, whatever the time. */
function chains(
  { certPem, certificates: [leaf], hashes }: CredentialFacts,
  bundle: string,
  purpose: CertificatePurpose,
  memory: CertificateMemory,
): boolean {
  if (leaf === undefined) return false;
  return remember(memory.chains, `${hashes.cert}|${hashOf(bundle, memory)}|${purpose}`, () => {
    const starts = blocksOf(bundle, memory).flatMap((block) => inspect(block, memory)[0]?.notBeforeMs ?? []);
    const atMs = starts.reduce((latest, start) => Math.max(latest, start), leaf.notBeforeMs);
    const problem = memory.ports.chainProblem(certPem.expose(), bundle, atMs, purpose);
    return problem === undefined || timeProblems.has(problem.kind);
  });
}

/** What is wrong with a certificate only for a time; its times are looked at apart. */
const timeProblems: ReadonlySet<string> = new Set(["expired", "caExpired", "notYetValid"]);
