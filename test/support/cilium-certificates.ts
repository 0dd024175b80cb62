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

/** An authority as every installation of Cilium makes one: all have the same name. */
export const makeCiliumAuthority = (): Certificate => makeCertificate({ subject: "Cilium CA", names: [], isCa: true });

/** Makes the certificates of a cluster, signed by `authority`; `alsoTrusted` are more certificates to trust, as PEM. */
export function issueCertificates(
  name: string,
  authMode: AuthMode,
  authority: Certificate,
  alsoTrusted = "",
): CiliumCertificates {
  const client = (subject: string) => makeCertificate({ subject, names: [], issuer: authority });
  const host = "clustermesh-apiserver.cilium.io";
  return {
    authority,
    trustPem: alsoTrusted + authority.certPem,
    server: makeCertificate({
      subject: host,
      names: [host, "*.mesh.cilium.io", "clustermesh-apiserver.kube-system.svc", "127.0.0.1"],
      issuer: authority,
    }),
    admin: client(`admin-${name}`),
    remote: client(authMode === "cluster" ? `remote-${name}` : "remote"),
    local: client(`local-${name}`),
  };
}
