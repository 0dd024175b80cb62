import { getFips } from "node:crypto";
import { DEFAULT_CIPHERS } from "node:tls";

/**
 * How keys are agreed on with whoever answers as a server: over elliptic curves. With the numbers of classic
 * Diffie-Hellman, which a server chooses in TLS 1.2 and may ask for in TLS 1.3, a handshake costs eighty times the CPU.
 */
export const keyExchange = {
  minVersion: "TLSv1.2",
  ciphers: `${DEFAULT_CIPHERS}:!kDHE`,
  ecdhCurve: `${getFips() === 1 ? "" : "X25519:"}P-256:P-384:P-521`,
} as const;
