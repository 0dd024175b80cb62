/** A name in a command line; one that is no Kubernetes name is quoted, so that pasting the line is safe. */
export const word = (name: string): string =>
  /^[A-Za-z0-9._:-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;
