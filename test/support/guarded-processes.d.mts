/** A folder whose processes and files go away together. */
export type GuardedFolder = {
  readonly folder: string;
  /** Ends every process and removes the folder; it happens by itself when the process that made it ends. */
  readonly stop: () => Promise<void>;
};

/** The path of a tool, which is built if it must be, with progress on standard error; throws if it cannot be had. */
export function toolPath(name: string): string;

/** The folder of a pinned Go module, which is downloaded if it must be; throws if it cannot be had. */
export function modulePath(name: string): string;

/** Makes a folder for files and processes; the answer's `stop` ends both, and so does the end of this process. */
export function guardedFolder(prefix: string): GuardedFolder;

/**
 * Starts a process of a folder, which it has in its environment so that it is known for ours. Its output goes to `<folder>/<name>.log`. `until` waits, and throws with the end of the log if the process ends or is
 * not ready after two minutes.
 */
export function startProcess(process: {
  readonly folder: string;
  readonly name: string;
  readonly command: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}): { readonly until: (isReadyNow: () => boolean | Promise<boolean>) => Promise<void> };

/** Runs `start` again, three times at most, while what it throws says that an address is in use. */
export function retryStart<T>(start: () => Promise<T>): Promise<T>;

/** A port of 127.0.0.1 that is free, below those the system gives to outgoing connections. */
export function freePort(): Promise<number>;

/** Whether a URL answers 200 now; with a path of certificates to trust, if it is HTTPS. */
export function isReady(url: string, caPath?: string): Promise<boolean>;
