import { defineConfig } from "vitest/config";

/** One project per layer, so that the fast loop runs without the dear ones. */
const project = (name: string, testTimeout = 10_000) => ({
  test: { name, include: [`test/${name}/**/*.test.ts`], testTimeout },
});

export default defineConfig({
  test: {
    maxWorkers: 2, // the properties are pure CPU; two cores halve them
    projects: [
      project("unit"),
      { test: { name: "scenarios", include: ["test/scenarios/*.test.ts"] } },
      project("property", 300_000),
      { test: { name: "tidy", include: ["test/tidy.test.ts"], testTimeout: 60_000 } },
    ],
  },
});
