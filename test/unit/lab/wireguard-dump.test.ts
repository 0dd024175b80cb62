import { describe, expect, test } from "vitest";
import { readDump } from "../../../src/lab/wireguard-dump.ts";

const key = (letter: string): string => `${letter.repeat(43)}=`;

describe("readDump", () => {
  test("a device and its peers", () => {
    const text = [
      [key("p"), key("A"), "51820", "off"],
      [key("B"), key("s"), "10.9.2.1:51820", "10.20.1.0/24,10.5.0.1/32", "1794840000", "1480", "2220", "25"],
      [key("C"), "(none)", "[fd00::1]:51820", "10.30.1.0/24", "0", "0", "148", "off"],
    ];
    expect(readDump(`${text.map((fields) => fields.join("\t")).join("\n")}\n`)).toEqual({
      publicKey: key("A"),
      listenPort: 51820,
      peers: [
        {
          publicKey: key("B"),
          presharedKey: key("s"),
          endpoint: "10.9.2.1:51820",
          allowedIPs: ["10.20.1.0/24", "10.5.0.1/32"],
          handshakeS: 1794840000,
          received: 1480,
          sent: 2220,
          keepaliveS: 25,
        },
        {
          publicKey: key("C"),
          presharedKey: "",
          endpoint: "[fd00::1]:51820",
          allowedIPs: ["10.30.1.0/24"],
          handshakeS: 0,
          received: 0,
          sent: 148,
          keepaliveS: 0,
        },
      ],
    });
  });

  test("a peer that was never heard of has no endpoint and no addresses", () => {
    const text = `${key("p")}\t${key("A")}\t51820\toff\n${key("B")}\t(none)\t(none)\t(none)\t0\t0\t0\toff\n`;
    expect(readDump(text).peers).toEqual([
      {
        publicKey: key("B"),
        presharedKey: "",
        endpoint: undefined,
        allowedIPs: [],
        handshakeS: 0,
        received: 0,
        sent: 0,
        keepaliveS: 0,
      },
    ]);
  });

  test("a device without a key has no public key and no peers", () => {
    expect(readDump("(none)\t(none)\t0\toff\n")).toEqual({ publicKey: "", listenPort: 0, peers: [] });
  });

  test("a device that is not there is an empty one", () => {
    expect(readDump("")).toEqual({ publicKey: "", listenPort: 0, peers: [] });
  });
});
