import { describe, expect, test } from "vitest";
import { alternativeName, labelValue, peerName, shortHash } from "../../../src/core/naming.ts";

// The names are those of the old operator: Peers that it wrote keep theirs, and a mesh that is deleted and made again
// finds the same ones.

describe("peerName", () => {
  test.each([
    ["mesh1", "cluster-a", "node-1", "mesh1--cluster-a--node-1"],
    ["m", "c", "n", "m--c--n"],
    ["1", "2", "3", "1--2--3"],
    ["mesh", "cluster", "ip-10-0-0-1.ec2.internal", "mesh--cluster--ip-10-0-0-1.ec2.internal"],
  ])("joins %s, %s and %s with two dashes", (mesh, cluster, node, name) => {
    expect(peerName(mesh, cluster, node)).toBe(name);
  });

  test.each([
    ["My_Mesh", "ClusterA", "Node.One", "my-mesh--clustera--node.one", "upper case becomes lower case"],
    ["mesh_1", "cluster", "node", "mesh-1--cluster--node", "an underscore becomes a dash"],
    ["mesh__name", "cluster", "node", "mesh--name--cluster--node", "dashes are not collapsed"],
    ["mesh", "cluster", "nöde/1 x", "mesh--cluster--n-de-1-x", "anything else becomes a dash"],
    [
      "mesh",
      "cluster",
      "node🙂",
      "mesh--cluster--node",
      "a character outside the basic plane is one dash, trimmed here",
    ],
    ["mesh", "cluster🙂", "node", "mesh--cluster---node", "a character outside the basic plane is one dash"],
    [".-mesh", "cluster", "node-.", "mesh--cluster--node", "dashes and dots at the ends go"],
  ])("of %s, %s and %s is %s: %s", (mesh, cluster, node, name) => {
    expect(peerName(mesh, cluster, node)).toBe(name);
  });

  test.each([
    ["", "cluster", "node", "cluster--node", "no mesh"],
    ["mesh", "", "node", "mesh----node", "no cluster"],
    ["mesh", "cluster", "", "mesh--cluster", "no node"],
    ["", "", "", "", "nothing at all"],
    ["--", "..", "__", "", "nothing usable"],
  ])("with parts missing (%j, %j, %j) is %j: %s", (mesh, cluster, node, name) => {
    expect(peerName(mesh, cluster, node)).toBe(name);
  });

  test("of 253 characters is left as it is, and with one more it ends in a hash of the whole", () => {
    const node = "n".repeat(253 - "m--c--".length);
    expect(peerName("m", "c", node)).toBe(`m--c--${node}`);
    expect(peerName("m", "c", `${node}n`)).toMatch(/^m--c--n{230}-[0-9a-f]{16}$/);
  });

  test("past 253 characters is the first 236, a dash and 16 digits of the hash of the raw text", () => {
    const name = peerName("a".repeat(100), "b".repeat(100), "c".repeat(100));
    expect(name).toBe(`${"a".repeat(100)}--${"b".repeat(100)}--${"c".repeat(32)}-117b7ae3536e8e53`);
    expect(name).toHaveLength(253);
  });

  test("drops dashes and dots before the hash where the cut leaves some", () => {
    expect(peerName("a".repeat(230), "_".repeat(20), "node")).toBe(`${"a".repeat(230)}-39f46223278ae6b5`);
  });

  test("hashes the raw text, so two long names that are cleaned to the same text differ", () => {
    const long = "x".repeat(250);
    expect(peerName("m_1", "c", long)).not.toBe(peerName("m-1", "c", long));
  });

  test("is the same for the same parts, and differs when one of them does", () => {
    const names = [
      peerName("mesh", "cluster", "node"),
      peerName("mesh2", "cluster", "node"),
      peerName("mesh", "cluster2", "node"),
      peerName("mesh", "cluster", "node2"),
    ];
    expect(peerName("mesh", "cluster", "node")).toBe(names[0]);
    expect(new Set(names).size).toBe(4);
  });

  test("can be one for two things, since -- is legal inside a part (B21)", () => {
    expect(peerName("a", "b--c", "d")).toBe(peerName("a", "b", "c--d"));
  });
});

describe("alternativeName", () => {
  test("is the name with a hash of what the thing is", () => {
    expect(alternativeName("m--c--n", "local")).toBe("m--c--n-25bf8e1a2393f110");
  });

  test("stays within 253 characters", () => {
    const name = alternativeName("n".repeat(253), "local");
    expect(name).toBe(`${"n".repeat(236)}-25bf8e1a2393f110`);
    expect(name).toHaveLength(253);
  });

  test("of no name at all is the hash alone", () => {
    expect(alternativeName("", "local")).toBe("25bf8e1a2393f110");
  });
});

describe("labelValue", () => {
  test.each(["", "m", "kilo-system", "Node.One_2", "x".repeat(63)])("leaves %j as it is: it is one", (text) => {
    expect(labelValue(text)).toBe(text);
  });

  test("of a longer text is its beginning and a hash of the whole", () => {
    expect(labelValue("x".repeat(64))).toBe(`${"x".repeat(46)}-7ce100971f64e700`);
    expect(labelValue("x".repeat(64))).toHaveLength(63);
  });

  test.each(["My mesh", "-mesh", "mesh-", "a/b", "é", "-", "🙂", " ", "x".repeat(45) + "-".repeat(30)])(
    "of %j is a label value, and not that of a text that looks alike",
    (text) => {
      expect(labelValue(text)).toMatch(/^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/);
      expect(labelValue(text)).not.toBe(labelValue(`${text}.`));
    },
  );
});

describe("shortHash", () => {
  test("is the first 8 bytes of the SHA-256 of the UTF-8 text, in lower-case hex", () => {
    expect(shortHash("local")).toBe("25bf8e1a2393f110");
    expect(shortHash("kilo-system/edge-kubeconfig/kubeconfig")).toBe("5f0ccd48da362e98");
  });
});
