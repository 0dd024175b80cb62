import type { CiliumPorts } from "../cilium/ports.ts";
import { chainProblem } from "../pki/chain.ts";
import { inspectCertificates, keyMatches } from "../pki/inspect.ts";
import { issueLeaf, issueProblem } from "../pki/issue.ts";

/** What the Cilium provider leaves to code that may use cryptography. */
export const ciliumPorts: CiliumPorts = {
  decode: (base64) => {
    const bytes = Buffer.from(base64, "base64");
    const text = bytes.toString("utf8");
    return Buffer.from(text, "utf8").equals(bytes) ? text : undefined;
  },
  inspect: (pem) =>
    inspectCertificates(pem).flatMap((found) => {
      if (found.error !== undefined) return [];
      const { commonName = "", issuerCommonName = "", sha256, ...rest } = found;
      return [{ ...rest, commonName, issuerName: issuerCommonName, fingerprint: sha256 }];
    }),
  chainProblem,
  keyMatches,
  issueProblem: (order) => issueProblem({ ...order, usage: "client" }),
  issue: (order) => issueLeaf({ ...order, usage: "client" }),
};
