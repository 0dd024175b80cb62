/** Flags that nobody can make sense of. */
export class Misused extends Error {}

/** A program that a bench needs and this machine does not have. */
export class ToolMissing extends Error {}
