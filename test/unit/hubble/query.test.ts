import { expect, test } from "vitest";
import { type FlowQuery, knowsClusterNames, requestFor } from "../../../src/hubble/query.ts";

const query: FlowQuery = {
  sinceMs: 0,
  numberMax: 100,
  source: { namespace: "shop", labels: {} },
  destination: { namespace: "data", labels: { "app.kubernetes.io/name": "db", app: "" } },
  ports: [],
  protocols: [],
};

test("without ports and protocols any will do, and answers that were dropped are not looked for", () => {
  const there = "k8s:io.kubernetes.pod.namespace=shop";
  const back = "k8s:io.kubernetes.pod.namespace=data,k8s:app=,k8s:app.kubernetes.io/name=db";
  expect(requestFor(query, "1.19.6")).toEqual({
    ok: true,
    value: {
      number: 100,
      whitelist: [
        { source_label: [there], destination_label: [back], reply: [false] },
        { source_label: [back], destination_label: [there], reply: [true] },
      ],
    },
  });
});

test.each([
  [{ numberMax: 0 }, 1],
  [{ numberMax: 7.9 }, 7],
  [{ numberMax: 1e9 }, 5_000],
])("a number of flows is one that a node can give: %j", (change, number) => {
  expect(requestFor({ ...query, ...change })).toMatchObject({ ok: true, value: { number } });
});

test.each<[FlowQuery["source"], string]>([
  [{ namespace: "", labels: {} }, '"" is not a namespace'],
  [{ namespace: "a,b", labels: {} }, '"a,b" is not a namespace'],
  [{ namespace: "shop", labels: { "a in (b),c": "d" } }, '"a in (b),c=d" is not a label'],
  [{ namespace: "shop", labels: { a: "b,!c" } }, '"a=b,!c" is not a label'],
  [{ namespace: "shop", labels: { a: "b\n" } }, '"a=b\\n" is not a label'],
])("nothing but labels gets into a selector: %j", (source, detail) => {
  expect(requestFor({ ...query, source })).toEqual({ ok: false, error: { kind: "invalid", detail } });
});

test.each([
  ["1.17.0", true],
  ["v1.19.6", true],
  ["1.20.1-rc.1", true],
  ["2.0.0", true],
  ["1.16.12", false],
  ["1.9.0", false],
  ["", false],
  ["latest", false],
  [undefined, false],
])("version %s knows cluster names: %s", (version, known) => {
  expect(knowsClusterNames(version)).toBe(known);
});
