// Whether one certificate is vouched for by another, as Go decides it, because etcd, Cilium and Hubble are Go: every
// certificate of the bundle is an anchor, also an intermediate one. Name constraints and path lengths are not checked.

import { shownName } from "../core/shown.ts";
import type { Usage } from "./certificate.ts";
import { type ReadCertificate, readCertificates } from "./read.ts";

/** Why a certificate would not be accepted, in the order in which it must be mended. */
export type ChainProblemKind =
  | "garbled" // no certificate can be read on one of the two sides
  | "untrusted" // nobody in the bundle signed it, perhaps somebody of the same name
  | "intermediateMissing" // what was sent along ends at an intermediate whose issuer is not there
  | "notCa" // the one that signed it may not sign certificates
  | "caExpired"
  | "expired"
  | "notYetValid"
  | "wrongUsage"; // it is for the other end of a connection

/** A reason why a certificate would not be accepted. */
export type ChainProblem = { readonly kind: ChainProblemKind; readonly detail: string };

/** Longer chains do not exist; a ring of certificates that signed each other must end somewhere. */
const depthMax = 6;

/** Signatures that are checked for one answer; a bundle of thousands with one name must not keep us busy. */
const checksMax = 200;

/**
 * Whether the first certificate is signed by one of the bundle, directly or through intermediates of either text that
 * may sign. Says nothing of time and usage.
 */
export function isSignedBy(leafPem: string, caPem: string): boolean {
  const { paths } = pathsFrom(readCertificates(leafPem).certificates, readCertificates(caPem).certificates);
  return paths.some((path) => path.slice(1, -1).every(({ maySign }) => maySign));
}

/**
 * Why a server or client that trusts the bundle would not accept the first certificate of `leafPem` from the other
 * end, further ones being sent along; undefined if it would. One good way to an anchor is enough.
 */
export function chainProblem(
  leafPem: string,
  caBundlePem: string,
  nowMs: number,
  purpose: Usage,
): ChainProblem | undefined {
  const shown = readCertificates(leafPem);
  const trusted = readCertificates(caBundlePem);
  const [first] = shown.blocks;
  if (first === undefined || "error" in first) return garbled(`the certificate is unreadable: ${first?.error ?? ""}`);
  if (trusted.certificates.length === 0) {
    const [block] = trusted.blocks;
    return garbled(`no CA can be read: ${block !== undefined && "error" in block ? block.error : "empty"}`);
  }
  const { paths, ends } = pathsFrom(shown.certificates, trusted.certificates);
  if (paths.length === 0) return brokenChain(first, ends, trusted.certificates);
  const problems = paths.map((path) => pathProblem(path, nowMs, purpose));
  if (problems.includes(undefined)) return undefined;
  return problems.reduce((worst, problem) => (rank(problem) > rank(worst) ? problem : worst));
}

/** The later a problem comes in this order, the less is wrong with its path. */
const order: readonly ChainProblemKind[] = ["notCa", "caExpired", "expired", "notYetValid", "wrongUsage"];
const rank = (problem: ChainProblem | undefined): number => (problem === undefined ? -1 : order.indexOf(problem.kind));

const garbled = (detail: string): ChainProblem => ({ kind: "garbled", detail });

type Path = readonly ReadCertificate[];

/** Every way from the first certificate to one of the bundle by signatures that hold, and where the others ended. */
function pathsFrom(
  shown: readonly ReadCertificate[],
  trusted: readonly ReadCertificate[],
): { readonly paths: readonly Path[]; readonly ends: readonly ReadCertificate[] } {
  const [leaf, ...sentAlong] = shown;
  if (leaf === undefined) return { paths: [], ends: [] };
  const anchors = new Set(trusted.map(({ facts }) => facts.sha256));
  const pool = [...new Map([...trusted, ...sentAlong].map((one) => [one.facts.sha256, one])).values()];
  const paths: Path[] = [];
  const ends: ReadCertificate[] = [];
  let checks = 0;
  const walk = (path: Path, last: ReadCertificate): void => {
    if (anchors.has(last.facts.sha256)) paths.push(path);
    if (path.length >= depthMax || paths.length >= checksMax) return;
    let further = false;
    for (const candidate of pool) {
      if (path.includes(candidate) || !candidate.subjectDer.equals(last.issuerDer)) continue;
      checks += 1;
      if (checks > checksMax) return;
      if (!isSigned(last, candidate)) continue;
      further = true;
      walk([...path, candidate], candidate);
    }
    if (!further) ends.push(last);
  };
  walk([leaf], leaf);
  return { paths, ends };
}

function isSigned({ x509 }: ReadCertificate, { publicKey }: ReadCertificate): boolean {
  if (publicKey === undefined) return false;
  try {
    return x509.verify(publicKey);
  } catch (error) {
    // A signature of one kind held against a key of another.
    if (error instanceof Error) return false;
    throw error;
  }
}

function brokenChain(
  leaf: ReadCertificate,
  ends: readonly ReadCertificate[],
  trusted: readonly ReadCertificate[],
): ChainProblem {
  const end = ends[0] ?? leaf;
  const namesake = trusted.find(({ subjectDer }) => subjectDer.equals(end.issuerDer));
  const issuer = quoted(end.facts.issuerCommonName);
  if (namesake !== undefined)
    return {
      kind: "untrusted",
      detail: `signed by another CA that is also called ${issuer}: its key is ${keyName(end.facts.authorityKeyId)}, the trusted one is ${keyName(namesake.facts.subjectKeyId)}`,
    };
  if (end !== leaf && !end.facts.selfIssued)
    return {
      kind: "intermediateMissing",
      detail: `signed through ${nameOf(end)}, whose issuer ${issuer} is neither sent along nor trusted`,
    };
  if (end.facts.selfIssued)
    return {
      kind: "untrusted",
      detail: `${end === leaf ? "signed by itself" : `signed by ${issuer}`}, which is not among the trusted CAs ${namesOf(trusted)}`,
    };
  return {
    kind: "untrusted",
    detail: `signed by ${issuer}, which is not among the trusted CAs ${namesOf(trusted)}; if it is an intermediate of one of them, it must be sent along`,
  };
}

function pathProblem(path: Path, nowMs: number, purpose: Usage): ChainProblem | undefined {
  const [leaf, ...authorities] = path;
  if (leaf === undefined) return undefined;
  const wanted = `${purpose}Auth` as const;
  const notCa = authorities.find(({ maySign }) => !maySign);
  if (notCa !== undefined)
    return { kind: "notCa", detail: `signed by ${nameOf(notCa)}, which is not a CA that may sign certificates` };
  const old = authorities.find(({ facts }) => facts.notAfterMs < nowMs);
  if (old !== undefined)
    return { kind: "caExpired", detail: `the CA ${nameOf(old)} expired on ${day(old.facts.notAfterMs)}` };
  if (leaf.facts.notAfterMs < nowMs)
    return { kind: "expired", detail: `${nameOf(leaf)} expired on ${day(leaf.facts.notAfterMs)}` };
  const early = path.find(({ facts }) => facts.notBeforeMs > nowMs);
  if (early !== undefined)
    return { kind: "notYetValid", detail: `${nameOf(early)} is valid from ${day(early.facts.notBeforeMs)} on` };
  const other = path.find(({ facts }) => facts.extKeyUsage !== undefined && !facts.extKeyUsage.includes(wanted));
  if (other !== undefined)
    return { kind: "wrongUsage", detail: `${nameOf(other)} is not for use by a ${purpose}: it lacks ${wanted}` };
  return undefined;
}

const day = (atMs: number): string => new Date(atMs).toISOString().slice(0, 19).replace("T", " ");
const quoted = (name: string | undefined): string =>
  name === undefined ? "somebody without a name" : `"${shownName(name)}"`;
const nameOf = ({ facts }: ReadCertificate): string => quoted(facts.commonName);
const keyName = (id: string | undefined): string => (id === undefined ? "without an id" : id.slice(0, 16));

function namesOf(certificates: readonly ReadCertificate[]): string {
  const names = [...new Set(certificates.map(nameOf))];
  return names.length > 3 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more` : names.join(", ");
}
