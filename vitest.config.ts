import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** One project per layer, so that the fast loop runs without the dear ones. */
const project = (name: string, testTimeout = 30_000) => ({
  test: { name, include: [`test/${name}/**/*.test.ts`], testTimeout },
});

/** How many files of the project `apiserver` run at once, each with servers of its own; they wait more than they work. */
const fleets = Number(process.env["CAUSEWAY_TEST_FLEETS"] ?? 1);

/** The files that wait longest; whoever starts them last waits for them alone. While `parts` runs, kcp gets ready. */
const longest = [
  "mutants",
  "parts",
  "rest",
  "faults-remote",
  "old-faults-meshes",
  "faults-local",
  "random",
  "faults-access",
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const place = longest.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
      return place === -1 ? longest.length : place;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    maxWorkers: 2, // the properties are pure CPU; two cores halve them
    projects: [
      project("unit"),
      {
        test: {
          name: "scenarios",
          include: ["test/scenarios/*.test.ts", "test/scenarios-cilium/*.test.ts"],
          testTimeout: 30_000,
        },
      },
      {
        // The planner is planned with thousands of times: as Node.js runs it, and not as the test runner transforms it.
        resolve: { alias: [{ find: /^(?:\.\.\/)+src\/(.*)\.ts$/, replacement: `${import.meta.dirname}/dist/$1.js` }] },
        test: {
          name: "property",
          include: ["test/property/**/*.test.ts"],
          globalSetup: "test/support/build-setup.ts",
          isolate: false, // what was compiled for one file serves the next
          testTimeout: 300_000,
          server: { deps: { external: [/\/dist\//] } },
        },
      },
      {
        test: {
          name: "hostile", // the operator as a process, against servers that mean harm
          include: ["test/hostile/*.test.ts"],
          globalSetup: "test/support/build-setup.ts",
          fileParallelism: false, // each measures how long others wait
          sequence: { groupOrder: 4 },
          testTimeout: 180_000,
        },
      },
      { test: { name: "tidy", include: ["test/tidy.test.ts"], testTimeout: 60_000 } },
      {
        test: {
          name: "simulation",
          include: ["test/simulation/*.test.ts"],
          sequence: { groupOrder: 2 }, // not beside servers: each file keeps a core busy
          testTimeout: 600_000,
        },
      },
      {
        test: {
          name: "apiserver",
          include: ["test/apiserver/**/*.test.ts", "test/conformance/**/*.test.ts"],
          globalSetup: "test/support/server-setup.ts",
          setupFiles: "test/support/release-fleet.ts",
          fileParallelism: fleets > 1,
          maxWorkers: fleets,
          sequence: { groupOrder: 1 }, // after the others: what waits for a server should not wait for a property
          testTimeout: 120_000,
          hookTimeout: 300_000,
        },
      },
      {
        test: {
          name: "cilium", // test/support/private-network.mjs runs it
          include: ["test/cilium/**/*.test.ts"],
          globalSetup: "test/support/kcp-setup.ts",
          fileParallelism: false, // clusters are told apart by their addresses, which are counted per process
          isolate: false, // one process for all files: they share the clusters of test/support/cilium-fleet.ts
          sequence: { groupOrder: 3 },
          testTimeout: 120_000,
          hookTimeout: 300_000,
        },
      },
    ],
  },
});
