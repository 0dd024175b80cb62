/** Why a kubeconfig is not used. What is in it never appears here, only the names of its entries and fields. */
export type Refusal = {
  readonly code: RefusalCode;
  /** What exactly was found. */
  readonly detail: string;
  /** What to do about it. */
  readonly fix: string;
};

/** Everything for which a kubeconfig is refused. */
export type RefusalCode = keyof typeof refusals;

/** What each code stands for, why it is refused and what helps. */
export const refusals = {
  KubeconfigTooLarge: {
    what: "the kubeconfig is larger than any real one",
    why: "whoever may write a Secret must not be able to keep the operator busy",
    fix: "keep one cluster, one user and one context in it, for instance with `kubectl config view --minify --raw --flatten`",
  },
  YamlInvalid: {
    what: "the text is not YAML, nests too deep, or is more aliases than data",
    why: "nothing can be read from it",
    fix: "store the output of `kubectl config view --minify --raw --flatten`",
  },
  KeyDuplicate: {
    what: "a mapping has a key twice",
    why: "one reader takes the first and another the last, so people who look at it may see another server than the operator",
    fix: "keep one of them; `kubectl config view --minify --raw --flatten` writes each once",
  },
  NotKubeconfig: {
    what: "the YAML is not a kubeconfig",
    why: "there is no mapping, or its kind is another one",
    fix: "check that the Secret's key holds a kubeconfig (kind: Config)",
  },
  EntryDuplicate: {
    what: "two entries of one list have the same name",
    why: "which one is meant is a guess",
    fix: "rename or remove one of them",
  },
  ContextMissing: {
    what: "no context is chosen",
    why: "current-context is empty and there is not exactly one context",
    fix: "set it with `kubectl config use-context NAME`",
  },
  ContextUnknown: {
    what: "the chosen context is not in the kubeconfig",
    why: "it decides which cluster and which user are meant",
    fix: "choose one of `kubectl config get-contexts`",
  },
  ClusterUnknown: {
    what: "the context's cluster is not in the kubeconfig",
    why: "it says where the API server is",
    fix: "add the cluster, or name an existing one in the context",
  },
  UserUnknown: {
    what: "the context's user is not in the kubeconfig",
    why: "it says who we are",
    fix: "add the user, or name an existing one in the context",
  },
  ServerMissing: {
    what: "the cluster has no server",
    why: "there is nowhere to connect to",
    fix: "set `server` to the URL of the API server",
  },
  ServerInvalid: {
    what: "the server is not a plain URL of 2048 characters at most",
    why: "user names, queries and fragments have no meaning for an API server, and may hide where it really is",
    fix: "write it as https://host:port, with a path only if the server has one",
  },
  ServerNotHttps: {
    what: "the server is not reached over https",
    why: "credentials would travel in the clear",
    fix: "use the https address of the API server",
  },
  ServerNameInvalid: {
    what: "tls-server-name is not a host name",
    why: "it is the name that the server's certificate must carry",
    fix: "write a host name, or leave it out",
  },
  ProxyNotAllowed: {
    what: "proxy-url is set",
    why: "the operator would connect to, and through, whatever the kubeconfig names",
    fix: "give an address that the operator can reach directly",
  },
  TlsVerifyDisabled: {
    what: "insecure-skip-tls-verify is set",
    why: "anybody on the way could read the credentials and answer in the cluster's name",
    fix: "put the cluster's CA into certificate-authority-data instead",
  },
  CaFileNotAllowed: {
    what: "certificate-authority names a file",
    why: "files of the operator's machine are not for kubeconfigs to read",
    fix: "inline it as certificate-authority-data: `kubectl config view --minify --raw --flatten`",
  },
  CaInvalid: {
    what: "certificate-authority-data cannot be read",
    why: "it must be base64 of certificates in PEM form",
    fix: "take it from a working kubeconfig: `kubectl config view --minify --raw --flatten`",
  },
  ExecNotAllowed: {
    what: "the user gets its credentials from a program (exec)",
    why: "it would run in the operator, which reads every cluster's Secrets; the image does not hold it either",
    fix: "create a ServiceAccount in that cluster and store a kubeconfig with its token",
  },
  AuthProviderNotAllowed: {
    what: "the user has an auth-provider",
    why: "Kubernetes removed them in 1.26, and they call out to servers that the kubeconfig names",
    fix: "create a ServiceAccount in that cluster and store a kubeconfig with its token",
  },
  BasicAuthNotAllowed: {
    what: "the user has a user name or a password",
    why: "API servers have not accepted them since Kubernetes 1.19",
    fix: "use a token or a client certificate",
  },
  ImpersonationNotAllowed: {
    what: "the user acts as somebody else (as, as-groups, as-uid, as-user-extra)",
    why: "what the operator does must be done, and logged, under its own name",
    fix: "store credentials of the identity that is meant",
  },
  TokenFileNotAllowed: {
    what: "tokenFile names a file",
    why: "a kubeconfig could send the operator's own token to a server of its choice",
    fix: "inline the token as `token`",
  },
  TokenInvalid: {
    what: "the token cannot be sent",
    why: "a token is one word of printable ASCII characters",
    fix: "store the token as it was issued, as text",
  },
  ClientCertificateFileNotAllowed: {
    what: "client-certificate or client-key names a file",
    why: "files of the operator's machine are not for kubeconfigs to read",
    fix: "inline them as client-certificate-data and client-key-data: `kubectl config view --minify --raw --flatten`",
  },
  ClientCertificateIncomplete: {
    what: "there is a client certificate without its key, or a key without its certificate",
    why: "one is of no use without the other",
    fix: "set both client-certificate-data and client-key-data",
  },
  ClientCertificateInvalid: {
    what: "client-certificate-data cannot be read",
    why: "it must be base64 of a certificate in PEM form that TLS accepts",
    fix: "issue the certificate again, or take it from a working kubeconfig",
  },
  ClientKeyInvalid: {
    what: "client-key-data cannot be read or used",
    why: "it must be base64 of a sound private key in PEM form, without a passphrase, RSA of 8192 bits at most",
    fix: "issue the key again, or take it from a working kubeconfig",
  },
  ClientKeyMismatch: {
    what: "the client key is not that of the client certificate",
    why: "every connection would fail",
    fix: "take both from the same place",
  },
  CredentialsMissing: {
    what: "the user has neither a token nor a client certificate",
    why: "the API server would not know who we are",
    fix: "create a ServiceAccount in that cluster and store a kubeconfig with its token",
  },
  NamespaceInvalid: {
    what: "the context's namespace is not a name",
    why: "it becomes part of paths",
    fix: "write a namespace, or leave it out",
  },
  FileUnreadable: {
    what: "a file cannot be read",
    why: "it is missing, or its permissions do not allow it",
    fix: "check the path and its permissions",
  },
  NotInCluster: {
    what: "this is not a Pod with a ServiceAccount",
    why: "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set",
    fix: "give a kubeconfig with --kubeconfig, or run in a Pod",
  },
} as const satisfies Readonly<Record<string, RefusalText>>;

/** What is said about a code wherever it appears. */
export type RefusalText = { readonly what: string; readonly why: string; readonly fix: string };

/** A refusal; the detail is what the code stands for, unless there is more to say. */
export function refusal(code: RefusalCode, detail: string = refusals[code].what): Refusal {
  return { code, detail, fix: refusals[code].fix };
}
