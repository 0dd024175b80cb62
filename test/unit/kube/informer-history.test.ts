import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isOlder } from "../../../src/kube/resource-version.ts";
import { Bench, fail, nodes } from "../../support/informer-bench.ts";
import { settled } from "../../../src/sim/virtual-clock.ts";

describe("startInformer, whatever happens", () => {
  const name = fc.constantFrom("a", "b", "c");
  const color = fc.constantFrom("red", "green", "blue");
  const kinds = ["unreachable", "garbled", "gone", "unauthorized", "notFound"] as const;
  const failure = fc.constantFrom(...kinds).map(fail);

  /** Something that happens: on the server, between it and us, or by our own doing. */
  const happening: fc.Arbitrary<(bench: Chaos) => void | Promise<void>> = fc.oneof(
    fc.tuple(name, color).map(
      ([key, hue]) =>
        (bench: Chaos) =>
          void bench.put(key, hue),
    ),
    name.map((key) => (bench: Chaos) => bench.api.drop(nodes, { name: key })),
    fc.tuple(name, color, fc.boolean()).map(
      ([key, hue, late]) =>
        (bench: Chaos) =>
          bench.writeOwn(key, hue, late),
    ),
    fc.tuple(name, fc.boolean()).map(
      ([key, late]) =>
        (bench: Chaos) =>
          bench.removeOwn(key, late),
    ),
    fc.constant((bench: Chaos) => bench.answer()),
    fc.constant((bench: Chaos) => bench.api.lag()),
    fc.constant((bench: Chaos) => bench.api.catchUp()),
    fc.constant((bench: Chaos) => bench.api.bookmark()),
    fc.constant((bench: Chaos) => bench.api.compact()),
    fc.option(failure, { nil: undefined }).map((why) => (bench: Chaos) => bench.api.endWatches(why)),
    failure.map((why) => (bench: Chaos) => bench.api.failNext("watch", why)),
    fc.tuple(failure, fc.boolean()).map(
      ([why, after]) =>
        (bench: Chaos) =>
          bench.api.failNext("list", { failure: why, after }),
    ),
    fc.tuple(name, color).map(
      ([key, hue]) =>
        (bench: Chaos) =>
          void (bench.amidList = () => bench.writeOwn(key, hue, false)),
    ),
    name.map((key) => (bench: Chaos) => void (bench.amidList = () => bench.removeOwn(key, false))),
    fc.constant(() => settled()),
    fc.constantFrom(50, 500, 5_000).map((ms) => (bench: Chaos) => bench.clock.advance(ms)),
  );

  /** A bench that does things by halves, and watches that nothing we did is undone. */
  class Chaos extends Bench {
    readonly #answers: (() => void)[] = [];
    readonly #written = new Map<string, string>();
    readonly #removed = new Set<string>();
    amidList: () => void | Promise<void> = () => undefined;

    writeOwn(key: string, hue: string, late: boolean): void {
      const stored = this.put(key, hue);
      const learn = (): void => {
        this.informer?.absorb(stored);
        if (this.#removed.has(stored.metadata.uid)) return;
        if (!isOlder(stored.metadata.resourceVersion, this.#written.get(key) ?? "1"))
          this.#written.set(key, stored.metadata.resourceVersion);
      };
      if (late) this.#answers.push(learn);
      else learn();
    }

    removeOwn(key: string, late: boolean): void {
      const uid = this.api.peek(nodes, { name: key })?.metadata.uid;
      if (uid === undefined) return;
      this.api.drop(nodes, { name: key });
      const learn = (): void => {
        this.informer?.forget(key, uid);
        this.#removed.add(uid);
      };
      if (late) this.#answers.push(learn);
      else learn();
    }

    /** One answer arrives that was late. */
    answer(): void {
      this.#answers.shift()?.();
    }

    check(): void {
      const view = this.view();
      if (view.state === "syncing") return;
      for (const [key, { uid, resourceVersion }] of view.objects) {
        expect(this.#removed.has(uid), `${key} came back`).toBe(false);
        expect(isOlder(resourceVersion, this.#written.get(key) ?? "1"), `${key} went back`).toBe(false);
      }
    }

    /** Nothing goes wrong any more, and everything arrives. */
    async calmDown(): Promise<void> {
      while (this.#answers.length > 0) this.answer();
      this.amidList = () => undefined;
      this.api.catchUp();
      await this.clock.advance(600_000);
    }

    /** What the server holds. */
    get truth(): string {
      return ["a", "b", "c"]
        .flatMap((key) => {
          const held = this.api.peek(nodes, { name: key });
          return held === undefined ? [] : [`${key} ${String(held["color"])}`];
        })
        .join(", ");
    }
  }

  test("nothing we did is undone, and in the end the view is what the server holds", async () => {
    let relists = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(happening, { maxLength: 80, size: "max" }), async (happenings) => {
        const bench = new Chaos("a", "b");
        bench.api.pageSize = 1;
        bench.api.beforePage = () => void bench.amidList();
        bench.onChange = () => bench.check();
        await bench.start();
        for (const happen of happenings) {
          await happen(bench);
          bench.check();
        }
        await bench.calmDown();
        expect(bench.view()).toMatchObject({ state: "synced", unkeyed: 0 });
        expect(bench.objects).toBe(bench.truth);
        expect(bench.messages("error")).toEqual([]); // a listener that threw, for instance
        relists += bench.api.calls.filter((call) => call === "list nodes").length - 1;
        bench.stop.abort();
        await bench.informer?.done;
        expect([bench.clock.pending, bench.api.openWatches]).toEqual([0, 0]);
      }),
      { ...(process.env["SEED"] ? {} : { seed: 20261115 }), numRuns: Number(process.env["RUNS"] ?? 500) },
    );
    expect(relists).toBeGreaterThan(100);
  }, 60_000);
});
