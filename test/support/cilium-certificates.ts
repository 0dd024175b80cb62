// The certificates of one Cilium cluster, with the names that Cilium's chart gives them: etcd's users are these names.

import { type Certificate, makeCertificate } from "./certificate.ts";

/** How clusters prove who they are to each other's etcd: all as one user, or each as its own. */
export type AuthMode = "legacy" | "migration" | "cluster";

/** The authority of a cluster and what it signed. */
export type CiliumCertificates = {
  readonly authority: Certificate;
  /** What programs of this cluster trust: the authority and, during a rotation, the one before it. */
  readonly trustPem: string;
  /** etcd's own. */
  readonly server: Certificate;
  /** The cluster's own programs, as etcd's administrator. */
  readonly admin: Certificate;
  /** Other clusters, which may read what is exported. */
  readonly remote: Certificate;
  /** The cluster's agents, which may read what was mirrored. */
  readonly local: Certificate;
};

const dayMs = 24 * 60 * 60 * 1000;

/** As Helm makes certificates, up to Cilium 1.19: from now on, for three years. */
const lasting = () => ({ notBeforeMs: Date.now() - 60_000, notAfterMs: Date.now() + 1095 * dayMs });

/** An authority as every installation of Cilium makes one: all have the same name. */
export const makeCiliumAuthority = (): Certificate =>
  makeCertificate({ subject: "Cilium CA", names: [], isCa: true, ...lasting() });

/** Whom certificates are for. */
export type Bearer = {
  readonly name: string;
  readonly authMode: AuthMode;
  /** More names and addresses of the server, as `clustermesh.apiserver.tls.server.extraIpAddresses` has them. */
  readonly serverNames: readonly string[];
};

/** Makes the certificates of a cluster, signed by `authority`; `alsoTrusted` are more certificates to trust, as PEM. */
export function issueCertificates(
  { name, authMode, serverNames }: Bearer,
  authority: Certificate,
  alsoTrusted = "",
): CiliumCertificates {
  const client = (subject: string) => makeCertificate({ subject, names: [], issuer: authority, ...lasting() });
  const host = "clustermesh-apiserver.cilium.io";
  return {
    authority,
    trustPem: alsoTrusted + authority.certPem,
    server: makeCertificate({
      subject: host,
      names: [host, "*.mesh.cilium.io", "clustermesh-apiserver.kube-system.svc", "127.0.0.1", ...serverNames],
      issuer: authority,
      ...lasting(),
    }),
    admin: client(`admin-${name}`),
    remote: client(authMode === "cluster" ? `remote-${name}` : "remote"),
    local: client(`local-${name}`),
  };
}
