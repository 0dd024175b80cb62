import { join } from "node:path";
import protobuf from "protobufjs";
import { describe, expect, test } from "vitest";
import { dropReasonName, dropReasons } from "../../../src/hubble/drop-reason.ts";
import { decodeResponse, definitions, encodeRequest } from "../../../src/hubble/messages.ts";
import { ciliumModule, protoFolder } from "../../support/cilium-module.ts";

const cilium = ciliumModule();
const missing = "missing" in cilium ? ` (skipped: ${cilium.missing})` : "";

describe.skipIf(missing !== "")(`our definitions beside those of Cilium${missing}`, () => {
  const real = "folder" in cilium ? realDefinitions(cilium.folder) : new protobuf.Root();
  const ours = protobuf.Root.fromJSON(definitions).resolveAll();

  test("every field has the number, the type, the repetition and the choice that it has there", () => {
    const mine = typesOf(ours).map((type) => [type.fullName, fieldsOf(type)]);
    const theirs = typesOf(ours).map((type) => {
      const same = real.lookupType(type.fullName);
      return [type.fullName, fieldsOf(same).filter(([name]) => type.fields[name as string] !== undefined)];
    });
    expect(mine).toEqual(theirs);
    expect(mine.length).toBeGreaterThan(15);
  });

  test("every value of an enumeration has the number that it has there", () => {
    for (const one of enumsOf(ours))
      expect(real.lookupEnum(one.fullName).values, one.fullName).toMatchObject(one.values);
    expect(real.lookupEnum("flow.DropReason").values).toEqual(dropReasons);
  });

  test("the path is that of the service", () => {
    const method = real.lookupService("observer.Observer").methods["GetFlows"];
    expect(method).toMatchObject({ requestType: "GetFlowsRequest", responseType: "GetFlowsResponse" });
    expect(method?.responseStream).toBe(true);
  });

  test("a request reads there as it was meant", () => {
    const whitelist = [
      {
        verdict: [2],
        source_label: ["k8s:a=b"],
        destination_label: ["k8s:c=d"],
        protocol: ["tcp"],
        source_port: ["1"],
        destination_port: ["80"],
        reply: [false, true],
        source_cluster_name: ["east"],
        destination_cluster_name: ["west"],
      },
    ];
    const type = real.lookupType("observer.GetFlowsRequest");
    const read = type.toObject(type.decode(encodeRequest({ number: 7, whitelist })), { longs: Number, enums: Number });
    expect(read).toEqual({ number: 7, whitelist });
  });
});

test("bytes that are no answer are none", () => {
  expect(decodeResponse(Buffer.from("garbage"))).toBeUndefined();
  expect(decodeResponse(Buffer.from([0x0a, 0xff]))).toBeUndefined();
  expect(decodeResponse(Buffer.alloc(0))).toEqual({});
});

test("a drop reason that is newer than we are keeps its number", () => {
  expect(dropReasonName(133)).toBe("POLICY_DENIED");
  expect(dropReasonName(181)).toBe("POLICY_DENY");
  expect(dropReasonName(999)).toBe("DROP_REASON_999");
});

function realDefinitions(folder: string): protobuf.Root {
  const root = new protobuf.Root();
  const bundled = root.resolvePath.bind(root);
  root.resolvePath = (origin, target) =>
    target.startsWith("google/") ? bundled(origin, target) : join(protoFolder(folder), target);
  return root.loadSync("observer/observer.proto", { keepCase: true }).resolveAll() as protobuf.Root;
}

function typesOf(space: protobuf.NamespaceBase): protobuf.Type[] {
  return space.nestedArray.flatMap((one) => [
    ...(one instanceof protobuf.Type ? [one] : []),
    ...(one instanceof protobuf.Namespace ? typesOf(one) : []),
  ]);
}

function enumsOf(space: protobuf.NamespaceBase): protobuf.Enum[] {
  return space.nestedArray.flatMap((one) => {
    if (one instanceof protobuf.Enum) return [one];
    return one instanceof protobuf.Namespace ? enumsOf(one) : [];
  });
}

/** A field as name, number, type with its full name, whether it repeats, and the choice it is one of. */
function fieldsOf(type: protobuf.Type): (string | number | boolean | undefined)[][] {
  return type.fieldsArray
    .map((field) => {
      const resolved = field.resolve();
      const { name, id, repeated, partOf } = resolved;
      return [name, id, resolved.resolvedType?.fullName ?? resolved.type, repeated, resolved.packed, partOf?.name];
    })
    .sort(([a], [b]) => (String(a) < String(b) ? -1 : 1));
}
