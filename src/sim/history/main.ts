// `npm run sim`: plays histories and tells of every rule that was broken.

import { randomInt } from "node:crypto";
import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { Command, InvalidArgumentError } from "commander";
import { type Outcome, partOf, runCampaign, shrink } from "./campaign.ts";
import type { Verdict } from "./course.ts";
import { bothGaps, type GapCount, noGaps } from "./gaps.ts";
import { type Acted, type Theatre, theatreOf } from "./theatre.ts";

type Options = {
  readonly histories: number;
  readonly seed: number;
  readonly jobs: number;
  readonly only?: readonly number[];
  readonly trace?: string;
  readonly save?: string;
  readonly stopAtFirst: boolean;
  readonly cilium: boolean;
};

const program = new Command("npm run sim --")
  .description(
    "Plays histories: the operator of production on simulated clusters, under a clock of its own, while a story drawn " +
      "from a seed takes nodes, networks, credentials and the operator itself away. docs/simulation.md has the rules.",
  )
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
  .option("--histories <n>", "how many, of consecutive seeds", positive, 100)
  .option("--seed <s>", "the first seed; without it one that nobody has chosen, which is printed", natural, anySeed())
  .option("--jobs <n>", "threads", positive, availableParallelism())
  .option("--only <numbers>", "of one seed, these steps of its story alone: 1,4", list)
  .option("--trace <file>", "of one seed, everything that happened")
  .option("--save <file>", "of one seed, the fleet as it was at the end, as a world file for `causeway plan -f`")
  .option("--stop-at-first", "end at the first rule that is broken", false)
  .option("--cilium", "histories of clusters that run Cilium, with tenants in kcp", false);

program.parse();
const options: Options = program.opts();
const theatre = options.cilium ? "cilium" : "kilo";
if (program.getOptionValueSource("seed") === "default") console.error(`the first seed is ${options.seed}`);
const isSingle = options.only !== undefined || options.trace !== undefined || options.save !== undefined;
if (isSingle && options.histories !== 1 && program.getOptionValueSource("histories") !== "default") {
  console.error("--only, --trace and --save are about one history: leave --histories out, or make it 1");
  process.exitCode = 2;
} else if (isSingle) await theatreOf(theatre)(single);
else await theatreOf(theatre)(campaign);

async function single<Story extends Acted>({ storyOf, play, inWords, ...told }: Theatre<Story>): Promise<void> {
  const story = storyOf(String(options.seed));
  const kept = options.only?.map((number) => number - 1) ?? story.steps.map((_, index) => index);
  const verdict = await play(partOf(story, kept));
  if (options.trace !== undefined) writeFileSync(options.trace, `${verdict.trace.join("\n")}\n`);
  if (options.save !== undefined) writeFileSync(options.save, verdict.world());
  console.error(inWords(story, kept));
  if (verdict.violation !== undefined) tellOf(options.seed, verdict, kept, story.steps.length);
  const failed = verdict.violation === undefined ? [] : [options.seed];
  conclude(1, failed, { ...told, seen: verdict.seen }, { ...gapsToTell(verdict.gaps), digest: verdict.digest });
}

async function campaign<Story extends Acted>({ storyOf, play, inWords, ...told }: Theatre<Story>): Promise<void> {
  const startedMs = performance.now();
  const seen = new Set<string>();
  const failed: Outcome[] = [];
  let done = 0;
  let virtualMs = 0;
  let gaps = noGaps;
  let toldMs = startedMs;
  const cpuBefore = process.cpuUsage();
  await runCampaign({
    firstSeed: options.seed,
    histories: options.histories,
    jobs: Math.min(options.jobs, Math.ceil(options.histories / 8)),
    theatre,
    stopsAtFirst: options.stopAtFirst,
    onOutcome: (outcome) => {
      done += 1;
      virtualMs += outcome.virtualMs;
      gaps = bothGaps(gaps, outcome.gaps ?? noGaps);
      for (const each of outcome.seen) seen.add(each);
      if (outcome.violation !== undefined) {
        failed.push(outcome);
        console.error(`seed ${outcome.seed}: ${outcome.violation.rule} is broken: ${outcome.violation.detail}`);
      }
      if (performance.now() - toldMs < 5_000) return;
      toldMs = performance.now();
      console.error(`${done} of ${options.histories} histories, ${failed.length} broke a rule`);
    },
  });
  const { user, system } = process.cpuUsage(cpuBefore);
  const cpuSeconds = (user + system) / 1_000_000;
  failed.sort((a, b) => a.seed - b.seed);
  for (const { seed, violation } of failed.slice(0, 3)) {
    const story = storyOf(String(seed));
    const { kept, verdict } = await shrink({ play }, story, violation?.rule ?? "");
    console.error(`\n${inWords(story, kept)}`);
    tellOf(seed, verdict, kept, story.steps.length);
  }
  const seconds = (performance.now() - startedMs) / 1_000;
  conclude(
    done,
    failed.map(({ seed }) => seed),
    { ...told, seen },
    {
      ...gapsToTell(gaps),
      rules: [...new Set(failed.map(({ violation }) => violation?.rule ?? ""))].sort(),
      seconds: Math.round(seconds * 10) / 10,
      cpuSeconds: Math.round(cpuSeconds * 10) / 10,
      historiesPerCoreSecond: Math.round((done / cpuSeconds) * 10) / 10,
      virtualHours: Math.round(virtualMs / 3_600_000),
    },
  );
}

function tellOf(seed: number, { violation }: Verdict, kept: readonly number[], steps: number): void {
  if (violation === undefined) return;
  const which = options.cilium ? "--cilium " : "";
  const only = kept.length === steps ? "" : ` --only ${kept.map((index) => index + 1).join(",") || "0"}`;
  console.error(`${violation.rule} is broken at ${(violation.atMs / 1000).toFixed(1)} s: ${violation.detail}`);
  console.error(`replay it: npm run sim -- ${which}--histories 1 --seed ${seed}${only} --trace history.log`);
  if (!options.cilium)
    console.error(`keep it:   npm run sim -- ${which}--histories 1 --seed ${seed}${only} --save scenario.yaml`);
}

type Coverage = Pick<Theatre<Acted>, "expected" | "completeFrom"> & { readonly seen: ReadonlySet<string> };

function conclude(
  histories: number,
  failedSeeds: readonly number[],
  { seen, expected, completeFrom }: Coverage,
  more: object,
): void {
  const sometimes = {
    seen: [...seen].sort(),
    unseen: expected.filter((each) => !seen.has(each)),
  };
  const isBlind = histories >= completeFrom && sometimes.unseen.length > 0;
  if (isBlind) console.error(`${histories} histories never came across: ${sometimes.unseen.join(", ")}`);
  console.log(
    JSON.stringify({
      firstSeed: options.seed,
      histories,
      violations: failedSeeds.length,
      failedSeeds,
      sometimes,
      ...more,
    }),
  );
  process.exitCode = failedSeeds.length === 0 && !isBlind ? 0 : 1;
}

/** Clusters with Cilium have no devices of Kilo's, and nothing to count. */
function gapsToTell({ totalMs, worstMs, ...counts }: GapCount = noGaps): object {
  const rounded = { ...counts, worstMs: Math.round(worstMs), seconds: Math.round(totalMs / 1_000) };
  return options.cilium ? {} : { gaps: rounded };
}

/** A seed by chance: every campaign by hand tells stories that were not told before. */
function anySeed(): number {
  return randomInt(1, 1_000_000_000);
}

function natural(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError("It must be a whole number.");
  return Number(text);
}

function positive(text: string): number {
  const number = natural(text);
  if (number === 0) throw new InvalidArgumentError("It must be more than 0.");
  return number;
}

function list(text: string): readonly number[] {
  return text.split(",").map(natural);
}
