// What the planner needs done by code that may use cryptography: texts are decoded, certificates read, checked and made.

import type { Redacted } from "../core/redacted.ts";
import type { Result } from "../core/result.ts";
import type { CertificateFacts } from "./facts.ts";

/** Which end of a connection a certificate is shown by. */
export type CertificatePurpose = "client" | "server";

/** Why a certificate would not be accepted. */
export type CertificateProblem = { readonly kind: string; readonly detail: string };

/** A client certificate that is wanted, and the authority that shall sign it. */
export type IssueOrder = {
  readonly commonName: string;
  readonly caCertPem: string;
  readonly caKeyPem: Redacted<string>;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
};

/** A certificate that was made, with its key. */
export type Issued = { readonly certPem: string; readonly keyPem: Redacted<string> };

/** Everything that is asked of the outside; nothing here throws, and nothing but `issue` depends on chance. */
export type CiliumPorts = {
  /** Base64 of UTF-8 text as text; undefined if it is not that. */
  readonly decode: (base64: string) => string | undefined;
  /** What the certificates of a PEM text say, in order; blocks that are none are left out. */
  readonly inspect: (pem: string) => readonly CertificateFacts[];
  /** Why whoever trusts the bundle would refuse the first certificate; undefined if it would not. */
  readonly chainProblem: (
    leafPem: string,
    caBundlePem: string,
    nowMs: number,
    purpose: CertificatePurpose,
  ) => CertificateProblem | undefined;
  /** Whether the key belongs to the first certificate. */
  readonly keyMatches: (certPem: string, keyPem: string) => boolean;
  /** Why an order could not be carried out; undefined if it could. Nothing is signed to find out. */
  readonly issueProblem: (order: IssueOrder) => { readonly detail: string } | undefined;
  readonly issue: (order: IssueOrder) => Result<Issued, { readonly detail: string }>;
};
