// Certificates let a simulated fleet be served over HTTPS on a machine with nothing but Node.js.

import { type Certificate, makeCertificate } from "../pki/certificate.ts";

const dayMs = 24 * 60 * 60 * 1000;

/** An authority and a certificate for this machine that it signed, both good for thirty days. */
export function makeAuthority(nowMs: number): { readonly authority: Certificate; readonly server: Certificate } {
  const times = { notBeforeMs: nowMs - dayMs, notAfterMs: nowMs + 30 * dayMs };
  const authority = makeCertificate({ ...times, subject: "causeway simulation", isCa: true });
  return { authority, server: makeCertificate({ ...times, subject: "127.0.0.1", issuer: authority }) };
}
