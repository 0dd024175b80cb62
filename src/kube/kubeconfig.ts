// Kubeconfigs from Secrets. They are written by people whom the operator does not trust with itself: credentials are
// inline, or there are none. Nothing is read, run or contacted because a kubeconfig says so, and no message quotes it.

import { createHash, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { canonicalText, textOf } from "../core/json.ts";
import { Redacted } from "../core/redacted.ts";
import { err, ok, type Result } from "../core/result.ts";
import { trimEnd } from "../core/trim.ts";
import { readPrivateKey } from "../pki/private-key.ts";
import type { ClusterAccess } from "./access.ts";
import { choose, type DocumentLimits, type Fields, readDocument } from "./kubeconfig-document.ts";
import { type Refusal, type RefusalCode, refusal } from "./refusal.ts";

/** What can be said about reading a kubeconfig. */
export type KubeconfigOptions = {
  /** The context to use instead of the current one. */
  readonly context?: string;
  /** The time, for a note about a client certificate that has expired. */
  readonly nowMs?: number;
};

/** What a kubeconfig in a Secret may have. One cluster, with its CA and a client certificate, has a tenth of both. */
const secretLimits: DocumentLimits = { bytesMax: 64 * 1024, marksMax: 4_096 };

/** The longest URL of a server. */
const serverCharsMax = 2_048;

/** Reads a kubeconfig from a Secret; refused, with a code, if it asks for anything but a server and inline credentials. */
export function parseKubeconfig(text: string, options: KubeconfigOptions = {}): Result<ClusterAccess, Refusal> {
  const document = readDocument(text, secretLimits);
  if (!document.ok) return document;
  const choice = choose(document.value, options.context);
  if (!choice.ok) return choice;
  const { cluster, user, namespace } = choice.value;
  return accessOf({ cluster: cluster.fields, user: user.fields, namespace }, options);
}

/** A cluster and a user whose files, if they may have any, have been read into the fields for inline data. */
export type Inlined = {
  readonly cluster: Fields;
  readonly user: Fields;
  readonly namespace: unknown;
  /** The server may go unverified; only the operator's own kubeconfig can say so. */
  readonly insecureAllowed?: true;
};

/** The access that a cluster and a user stand for. */
export function accessOf(inlined: Inlined, { nowMs }: KubeconfigOptions): Result<ClusterAccess, Refusal> {
  const { cluster, user } = inlined;
  const forbidden = forbiddenIn(inlined);
  if (forbidden !== undefined) return err(refusal(forbidden));
  const server = serverOf(cluster["server"]);
  if (!server.ok) return server;
  const skipTlsVerify = isSet(cluster["insecure-skip-tls-verify"]);
  const ca = caOf(cluster["certificate-authority-data"]);
  if (!ca.ok) return ca;
  const serverName = nameOf(cluster["tls-server-name"], hostPattern, "ServerNameInvalid");
  if (!serverName.ok) return serverName;
  const token = tokenOf(user["token"]);
  if (!token.ok) return token;
  const certificate = clientCertificateOf(user["client-certificate-data"], user["client-key-data"]);
  if (!certificate.ok) return certificate;
  const namespace = nameOf(inlined.namespace, namespacePattern, "NamespaceInvalid");
  if (!namespace.ok) return namespace;
  if (token.value === undefined && certificate.value === undefined) return err(refusal("CredentialsMissing"));
  return ok(
    fingerprinted({
      server: server.value,
      ...(ca.value === undefined || skipTlsVerify ? {} : { caPem: ca.value }),
      ...(serverName.value === undefined ? {} : { serverName: serverName.value }),
      ...(token.value === undefined ? {} : { token: token.value }),
      ...(certificate.value === undefined ? {} : { clientCertificate: certificate.value }),
      ...(skipTlsVerify ? { skipTlsVerify: true } : {}),
      ...(namespace.value === undefined ? {} : { namespace: namespace.value }),
      notes: [...notesOn(certificate.value?.certPem, nowMs), ...(skipTlsVerify ? [unverified] : [])],
    }),
  );
}

/**
 * The access with its fingerprint. `tokenSource` stands for a token that rotates: who we are stays the same then.
 * The namespace is not part of it: it decides neither where we go nor who we are.
 */
export function fingerprinted(access: Omit<ClusterAccess, "fingerprint">, tokenSource?: string): ClusterAccess {
  const { server, caPem, serverName, token, clientCertificate, skipTlsVerify } = access;
  const identity = {
    server,
    caPem,
    serverName,
    skipTlsVerify,
    token: tokenSource === undefined ? token?.expose() : undefined,
    tokenSource,
    certPem: clientCertificate?.certPem,
    keyPem: clientCertificate?.keyPem.expose(),
  };
  return { ...access, fingerprint: createHash("sha256").update(canonicalText(identity)).digest("hex") };
}

const unverified =
  "insecure-skip-tls-verify: the server's certificate is not verified, so anybody on the way can pose as it";

/** What is refused wherever it stands, in the order in which it is looked for. */
function forbiddenIn({ cluster, user, insecureAllowed }: Inlined): RefusalCode | undefined {
  const checks: readonly (readonly [RefusalCode, Fields, readonly string[]])[] = [
    ["ExecNotAllowed", user, ["exec"]],
    ["AuthProviderNotAllowed", user, ["auth-provider"]],
    ["BasicAuthNotAllowed", user, ["username", "password"]],
    ["ImpersonationNotAllowed", user, ["as", "as-groups", "as-uid", "as-user-extra"]],
    ["TokenFileNotAllowed", user, ["tokenFile"]],
    ["ClientCertificateFileNotAllowed", user, ["client-certificate", "client-key"]],
    ["ProxyNotAllowed", cluster, ["proxy-url"]],
    ["CaFileNotAllowed", cluster, ["certificate-authority"]],
    ["TlsVerifyDisabled", cluster, insecureAllowed === true ? [] : ["insecure-skip-tls-verify"]],
  ];
  return checks.find(([, fields, names]) => names.some((name) => isSet(fields[name])))?.[0];
}

/** Anything but what means the same as nothing. */
const isSet = (value: unknown): boolean => value !== undefined && value !== null && value !== "" && value !== false;

function serverOf(value: unknown): Result<string, Refusal> {
  if (!isSet(value)) return err(refusal("ServerMissing"));
  if (typeof value === "string" && value.length > serverCharsMax)
    return err(refusal("ServerInvalid", `the server has more than ${serverCharsMax} characters`));
  const url = typeof value === "string" && URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined) return err(refusal("ServerInvalid", "the server is not a URL"));
  if (url.protocol !== "https:") return err(refusal("ServerNotHttps"));
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "")
    return err(refusal("ServerInvalid", "the server has a user name, a query or a fragment"));
  return ok(`${url.origin}${trimEnd(url.pathname, "/")}`);
}

const hostPattern = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i;
const namespacePattern = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

function nameOf(value: unknown, pattern: RegExp, code: RefusalCode): Result<string | undefined, Refusal> {
  if (!isSet(value)) return ok(undefined);
  return typeof value === "string" && pattern.test(value) ? ok(value) : err(refusal(code));
}

/** A token that can be sent; undefined, if there is none. */
export function tokenOf(value: unknown): Result<Redacted<string> | undefined, Refusal> {
  if (!isSet(value)) return ok(undefined);
  const token = typeof value === "string" ? value.trim() : "";
  return /^[\x21-\x7e]+$/.test(token) ? ok(new Redacted(token)) : err(refusal("TokenInvalid"));
}

function caOf(value: unknown): Result<string | undefined, Refusal> {
  if (!isSet(value)) return ok(undefined);
  const certificates = certificatesOf(decoded(value));
  if (certificates.length === 0) return err(refusal("CaInvalid"));
  const caPem = certificates.join("\n");
  return unusable({ ca: caPem }) ? err(refusal("CaInvalid")) : ok(caPem);
}

function clientCertificateOf(certificate: unknown, key: unknown): Result<ClusterAccess["clientCertificate"], Refusal> {
  if (!isSet(certificate) && !isSet(key)) return ok(undefined);
  if (!isSet(certificate) || !isSet(key)) return err(refusal("ClientCertificateIncomplete"));
  const chain = certificatesOf(decoded(certificate));
  const [leaf] = chain;
  if (leaf === undefined) return err(refusal("ClientCertificateInvalid"));
  const keyPem = decoded(key);
  const privateKey = readPrivateKey(keyPem);
  if (!privateKey.ok) return err(refusal("ClientKeyInvalid", `the client key is ${privateKey.error}`));
  if (!new X509Certificate(leaf).checkPrivateKey(privateKey.value)) return err(refusal("ClientKeyMismatch"));
  const certPem = chain.join("\n");
  if (unusable({ cert: certPem, key: keyPem })) return err(refusal("ClientCertificateInvalid"));
  return ok({ certPem, keyPem: new Redacted(keyPem) });
}

/** Base64, strictly: Node.js would skip whatever is not. */
function decoded(value: unknown): string {
  const text = textOf(value)?.replaceAll(/\s+/g, "") ?? "";
  return /^[A-Za-z0-9+/]+={0,2}$/.test(text) ? Buffer.from(text, "base64").toString("utf8") : "";
}

/** The certificates in a PEM text, comments left out; none, if one of them cannot be read. */
function certificatesOf(pem: string): readonly string[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return blocks.every((block) => attempt(() => new X509Certificate(block)) !== undefined) ? blocks : [];
}

/** OpenSSL has the last word: it also refuses what can be read but is too weak. */
const unusable = (parts: { ca?: string; cert?: string; key?: string }): boolean =>
  attempt(() => createSecureContext(parts)) === undefined;

/** What something gives; undefined if it throws, which here always means that the input cannot be read. */
function attempt<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch {
    return undefined; // the error may quote the input, and the refusal says all there is to say
  }
}

function notesOn(certPem: string | undefined, nowMs: number | undefined): readonly string[] {
  if (certPem === undefined || nowMs === undefined) return [];
  const { validTo } = new X509Certificate(certPem);
  return Date.parse(validTo) < nowMs ? [`the client certificate expired on ${validTo}`] : [];
}
