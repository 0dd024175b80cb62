// What `wg show DEVICE dump` prints.

/** A peer of a device. */
export type DumpPeer = {
  readonly publicKey: string;
  readonly presharedKey: string;
  readonly endpoint: string | undefined;
  readonly allowedIPs: readonly string[];
  /** Seconds since the epoch; 0, if there was none since the device was written. */
  readonly handshakeS: number;
  readonly received: number;
  readonly sent: number;
  readonly keepaliveS: number;
};

/** A device. */
export type WireguardDump = {
  readonly publicKey: string;
  readonly listenPort: number;
  readonly peers: readonly DumpPeer[];
};

const none = "(none)";

/** Reads the dump of one device: a line of its own, then one per peer. */
export function readDump(text: string): WireguardDump {
  const [own = "", ...lines] = text.split("\n").filter((line) => line !== "");
  const [, publicKey = none, listenPort = "0"] = own.split("\t");
  const peers = lines.map((line) => {
    const [key = "", psk = none, endpoint = none, allowed = none, handshake, received, sent, keepalive] =
      line.split("\t");
    return {
      publicKey: key,
      presharedKey: psk === none ? "" : psk,
      endpoint: endpoint === none ? undefined : endpoint,
      allowedIPs: allowed === none ? [] : allowed.split(","),
      handshakeS: Number(handshake ?? 0),
      received: Number(received ?? 0),
      sent: Number(sent ?? 0),
      keepaliveS: keepalive === "off" ? 0 : Number(keepalive ?? 0),
    };
  });
  return { publicKey: publicKey === none ? "" : publicKey, listenPort: Number(listenPort), peers };
}
