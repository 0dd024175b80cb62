/** Where the programs are that a fleet is made of. */
export type FleetTools = { readonly apiserver: string; readonly etcd: string; readonly kubectl: string };

/** A started API server, as plain data: whoever has it, in whatever process, can reach and control the server. */
export type ServerDescription = {
  readonly name: string;
  readonly url: string;
  readonly port: number;
  /** The certificates a client has to trust; every server has an authority of its own. */
  readonly caPem: string;
  /** May do everything: user `admin`, group `system:masters`. */
  readonly adminToken: string;
  /** May do nothing until a test binds a role: user `causeway`. */
  readonly operatorToken: string;
  /** The folder of the whole fleet. */
  readonly folder: string;
  readonly command: readonly string[];
  readonly auditLog: string;
  /** The path of kubectl. */
  readonly kubectl: string;
};

/** A running fleet: the servers in the order of their names, and how long they took to be ready. */
export type Fleet = {
  readonly folder: string;
  readonly servers: readonly ServerDescription[];
  readonly readyMs: number;
  /** Ends everything and removes every file; it happens by itself when the process that started the fleet ends. */
  readonly stop: () => Promise<void>;
};

/** Finds the programs, or builds them, with progress on standard error. */
export function obtainTools(): FleetTools;

/** Starts one etcd and an API server per name, and answers when all are ready. */
export function launchFleet(
  names: readonly string[],
  tools?: FleetTools,
  options?: {
    /** How the fleet's folder in the temporary directory begins. */
    readonly prefix?: string;
    /** Where a server listens, and what its Services get; loopback and 10.96.0.0/16 by default. */
    readonly placeOf?: (name: string) => { readonly address?: string; readonly serviceCidr?: string };
  },
): Promise<Fleet>;

/** The number of the server's process, unless the server is down. */
export function serverPid(server: ServerDescription): number | undefined;

/** Makes the server hang: connections stay open and nothing answers. */
export function pauseServer(server: ServerDescription): void;

/** Ends a pause. */
export function resumeServer(server: ServerDescription): void;

/** Takes the server down, paused or not: SIGTERM and after 3 s SIGKILL, or SIGKILL at once if `hard`. */
export function stopServer(server: ServerDescription, how?: { readonly hard?: boolean }): Promise<void>;

/** Brings the server up again, with the same port, certificates and data, and answers when it is ready. */
export function startServer(server: ServerDescription): Promise<void>;

/** A kubeconfig with the certificates and the token inline. */
export function kubeconfigFor(server: Pick<ServerDescription, "name" | "url" | "caPem">, token: string): string;

/** The path of a kubeconfig for the admin. */
export function adminKubeconfig(server: Pick<ServerDescription, "folder" | "name">): string;
