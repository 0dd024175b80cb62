/** The variable in which a process of a fleet has the fleet's folder. */
export const folderVariable: string;

/** The folder in which the processes of a fleet note their numbers. */
export function pidsFolder(folder: string): string;

/** Whether a process runs; a zombie has let go of everything and does not. */
export function isAlive(pid: number): boolean;

/** The number of a process of a fleet, as long as it lives. */
export function livePid(folder: string, name: string): number | undefined;

/** Sends a signal to a process of a fleet; false if it does not live. */
export function signalProcess(folder: string, name: string, signal: NodeJS.Signals): boolean;

/** Makes a process of a fleet hang: when this returns none of its threads runs any more. False if it does not live. */
export function freezeProcess(folder: string, name: string): boolean;

/** Ends a process of a fleet, paused or not: kindly, and after the grace by force; without a grace by force at once. */
export function endProcess(folder: string, name: string, graceMs: number): Promise<void>;

/** Ends every process of a fleet by force, lets none start any more, and removes the folder. */
export function endFleet(folder: string): Promise<void>;
