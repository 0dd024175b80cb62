import type { Version } from "./mesh-state.ts";

/**
 * The version that the tag of an image names: `quay.io/cilium/cilium:v1.19.6@sha256:…`, also with the suffix of a
 * distribution (`v1.16.3-gke.2`). What is no version of that form is not guessed at.
 */
export function versionOf(image: string): Version | undefined {
  const withoutDigest = image.slice(0, 512).split("@", 1)[0] ?? "";
  const colon = withoutDigest.lastIndexOf(":");
  const tag = colon === -1 ? "" : withoutDigest.slice(colon + 1);
  // With a slash it is the port of a registry, and what follows it.
  const match = tag.includes("/") ? null : /^v?(\d{1,3})\.(\d{1,3})\.(\d{1,4})(?:$|[-+._])/.exec(tag);
  if (match === null) return undefined;
  const [, major, minor, patch] = match;
  return { major: Number(major), minor: Number(minor), patch: Number(patch), text: `${major}.${minor}.${patch}` };
}

/** Whether a version is a minor version or later. */
export const isAtLeast = ({ major, minor }: Version, wantedMajor: number, wantedMinor: number): boolean =>
  major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);

/** Whether the first of two versions is a minor version before the second. */
export const isOlder = (a: Version, b: Version): boolean => !isAtLeast(a, b.major, b.minor);

/** How many minor versions lie between two; without end if their major versions differ. */
export const minorsBetween = (a: Version, b: Version): number =>
  a.major === b.major ? Math.abs(a.minor - b.minor) : Number.POSITIVE_INFINITY;
