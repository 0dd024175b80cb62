import { describe, expect, test } from "vitest";
import { electLeaders, type Election, type Led } from "../../../src/kilo/election.ts";
import { type KiloFacts, type NodeFacts, readNode } from "../../../src/kilo/facts.ts";

const nowSeconds = 1_800_000_000;

type Node = {
  readonly name: string;
  readonly ago?: number;
  readonly wireguardIp?: string;
  readonly leader?: boolean;
  readonly stopped?: boolean;
  readonly annotations?: Readonly<Record<string, string>>;
};

function node({
  name,
  ago = 10,
  wireguardIp = "",
  leader = false,
  stopped = false,
  annotations = {},
}: Node): NodeFacts {
  const published = {
    "kilo.squat.ai/key": `${name[1]?.repeat(42)}A=`,
    "kilo.squat.ai/endpoint": `192.0.2.${name.slice(1)}:51820`,
    "kilo.squat.ai/internal-ip": `172.16.0.${name.slice(1)}/24`,
    "kilo.squat.ai/wireguard-ip": wireguardIp,
    "kilo.squat.ai/granularity": "location",
    "kilo.squat.ai/last-seen": String(nowSeconds - ago),
  };
  const read = readNode({
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      annotations: {
        ...(stopped ? {} : published),
        ...(leader ? { "kilo.squat.ai/leader": "" } : {}),
        ...annotations,
      },
    },
    spec: { podCIDRs: [`10.1.${name.slice(1)}.0/24`] },
    status: { addresses: [{ type: "InternalIP", address: `172.16.0.${name.slice(1)}` }] },
  });
  if (!read.ok) throw new Error(read.error.detail);
  return read.value;
}

const factsOf = (nodes: readonly Node[]): KiloFacts => ({
  nodes: nodes.map(node),
  peers: [],
  unreadable: [],
  serviceRanges: [],
  peersServed: true,
  uid: undefined,
});

/** Elects in one world after the other; answers with the leader of the only location in each. */
function inTurn(...worlds: readonly (readonly Node[])[]): readonly (string | undefined)[] {
  let led: ReadonlyMap<string, Led> = new Map();
  return worlds.map((nodes) => {
    const election = electLeaders(factsOf(nodes), led);
    led = election.led;
    return election.leaders.get("")?.node.name;
  });
}

const once = (nodes: readonly Node[]): string | undefined => inTurn(nodes)[0];
const electionOf = (nodes: readonly Node[]): Election => electLeaders(factsOf(nodes), new Map());

const address = "10.4.0.1/16";
const n1 = { name: "n1", wireguardIp: address };

describe("Kilo's rule", () => {
  const priv = (name: string): Readonly<Record<string, string>> => ({
    "kilo.squat.ai/endpoint": `172.16.0.${name.slice(1)}:51820`,
  });
  const cases: readonly [string, readonly Node[], string | undefined][] = [
    ["the first by name", [{ name: "n2" }, { name: "n1" }], "n1"],
    ["a public endpoint before a private one", [{ name: "n1", annotations: priv("n1") }, { name: "n2" }], "n2"],
    ["a volunteer before all others", [{ name: "n1" }, { name: "n2", leader: true, annotations: priv("n2") }], "n2"],
    [
      "of volunteers, a public one",
      [
        { name: "n1", leader: true, annotations: priv("n1") },
        { name: "n2", leader: true },
      ],
      "n2",
    ],
    [
      "a forced endpoint instead of the one that was found",
      [{ name: "n1", annotations: { "kilo.squat.ai/force-endpoint": "10.0.0.1:51820" } }, { name: "n2" }],
      "n2",
    ],
    [
      "a unique local IPv6 address is private",
      [{ name: "n1", annotations: { "kilo.squat.ai/endpoint": "[fd00::1]:51820" } }, { name: "n2" }],
      "n2",
    ],
    [
      "nobody, if it hangs on a name",
      [{ name: "n1", annotations: { "kilo.squat.ai/endpoint": "a.example:1" } }, { name: "n2" }],
      undefined,
    ],
    [
      "a lone volunteer, whatever its endpoint",
      [{ name: "n1" }, { name: "n2", leader: true, annotations: { "kilo.squat.ai/endpoint": "a.example:1" } }],
      "n2",
    ],
    [
      "nobody, if a key cannot be read",
      [{ name: "n1", annotations: { "kilo.squat.ai/key": "x" } }, { name: "n2" }],
      undefined,
    ],
    ["not one that was stopped", [{ name: "n1", stopped: true }, { name: "n2" }], "n2"],
    [
      "nobody, if all were stopped",
      [
        { name: "n1", stopped: true },
        { name: "n2", stopped: true },
      ],
      undefined,
    ],
  ];
  test.each(cases)("%s", (_, nodes, leader) => expect(once(nodes)).toBe(leader));

  test("two addresses in one location mean that the agents see other locations: nobody is elected", () => {
    expect(once([n1, { name: "n2", wireguardIp: "10.4.0.2/16" }])).toBeUndefined();
  });

  test("nobody is elected while a Node cannot be read, or a node is in another mode", () => {
    const facts = factsOf([{ name: "n1" }, { name: "n2" }]);
    const unreadable = [{ kind: "Node", name: undefined, detail: "broken" }];
    expect(electLeaders({ ...facts, unreadable }, new Map()).leaders.size).toBe(0);
    expect(
      once([{ name: "n1" }, { name: "n2", annotations: { "kilo.squat.ai/granularity": "full" } }]),
    ).toBeUndefined();
  });
});

describe("against a live node that publishes the address", () => {
  const asked = { name: "n2", leader: true };

  test("a change of the rule's choice that was seen is followed at once", () => {
    expect(inTurn([n1, { name: "n2" }], [n1, asked])).toEqual(["n1", "n2"]);
  });

  test("one that was not seen is not: it may be older than the agents' last word", () => {
    expect(inTurn([n1, asked], [n1, asked])).toEqual([undefined, undefined]);
  });

  test("it is confirmed in either order", () => {
    const published = { ...asked, wireguardIp: address };
    expect(inTurn([n1, { name: "n2" }], [n1, asked], [n1, published], [{ name: "n1" }, published])).toEqual([
      "n1",
      "n2",
      "n2",
      "n2",
    ]);
    expect(inTurn([n1, { name: "n2" }], [n1, asked], [{ name: "n1" }, asked], [{ name: "n1" }, published])).toEqual([
      "n1",
      "n2",
      "n2",
      "n2",
    ]);
  });

  test("it is given up once both have checked in without a change, and not tried again", () => {
    expect(
      inTurn(
        [n1, { name: "n2" }],
        [n1, asked],
        [n1, { ...asked, ago: 1 }],
        [
          { ...n1, ago: 1 },
          { ...asked, ago: 1 },
        ],
        [n1, { ...asked, ago: 0 }],
      ),
    ).toEqual(["n1", "n2", "n2", undefined, undefined]);
  });

  test("what nobody contradicted is given up when somebody else publishes the address", () => {
    const others = [{ name: "n2" }, { name: "n3" }];
    const n3 = { name: "n3", wireguardIp: address };
    expect(inTurn([n1, ...others], others, [{ name: "n2" }, n3])).toEqual(["n1", "n2", undefined]);
  });
});

describe("a leader whose agent falls silent", () => {
  const fresh = { name: "n2", ago: 0 };

  test("keeps its place until half of the agents must have dropped it", () => {
    expect(once([{ ...n1, ago: 75 }, fresh])).toBe("n1");
    expect(once([{ ...n1, ago: 76 }, fresh])).toBe("n2");
  });

  test("loses it when a successor publishes the address, as soon as an agent may drop it", () => {
    const successor = { ...fresh, wireguardIp: address };
    expect(once([{ ...n1, ago: 60 }, successor])).toBe("n1");
    expect(once([{ ...n1, ago: 61 }, successor])).toBe("n2");
  });

  test("is measured by the clocks of its own cluster", () => {
    const hourAgo = 3_600;
    expect(
      once([
        { ...n1, ago: hourAgo + 75 },
        { name: "n2", ago: hourAgo },
      ]),
    ).toBe("n1");
  });

  test("gets its place back with a fresh check-in only, so that a wrong clock does not move it to and fro", () => {
    const seen = (ago: number): readonly Node[] => [{ ...n1, ago }, fresh];
    expect(inTurn(seen(50), seen(76), seen(50), seen(36), seen(35))).toEqual(["n1", "n2", "n2", "n2", "n1"]);
  });

  test("goes on if its successor does not take over, be it that the agents are stuck", () => {
    expect(once([{ ...n1, ago: 125 }, fresh])).toBe("n2");
    expect(once([{ ...n1, ago: 126 }, fresh])).toBeUndefined();
    expect(
      once([
        { ...n1, ago: 126 },
        { ...fresh, wireguardIp: address },
      ]),
    ).toBe("n2");
  });

  test("leaves its address to the location", () => {
    let led: ReadonlyMap<string, Led> = electionOf([n1, fresh]).led;
    led = electLeaders(factsOf([{ name: "n1", stopped: true }, fresh]), led).led;
    expect(electLeaders(factsOf([fresh]), led).leaders.get("")?.address).toBe("10.4.0.1");
  });
});

describe("when to look again", () => {
  test("when the leader's silence would mean something, and then every 5 s; not for nodes alone", () => {
    expect(
      electionOf([
        { ...n1, ago: 20 },
        { name: "n2", ago: 0 },
      ]).againSeconds,
    ).toBe(55);
    expect(
      electionOf([
        { ...n1, ago: 74 },
        { name: "n2", ago: 0 },
      ]).againSeconds,
    ).toBe(5);
    expect(electionOf([n1]).againSeconds).toBeUndefined();
  });

  test("every 5 s while the agents contradict the rule: their check-ins are not announced", () => {
    const { led } = electionOf([n1, { name: "n2" }]);
    expect(electLeaders(factsOf([n1, { name: "n2", leader: true }]), led).againSeconds).toBe(5);
  });

  test("at leisure while nobody publishes an address: that is announced", () => {
    expect(electionOf([{ name: "n1" }, { name: "n2" }]).againSeconds).toBe(75);
  });
});
