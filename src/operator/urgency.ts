// Whoever may say that a change is urgent may say so all day. So it is spent: an object that changes now and then never
// waits, one that changes all the time is paced like everything else.

/** An object was quiet for so long before, and how often it has that, and how long until once more. */
const budget = { quietMs: 4_000, most: 5, refillMs: 30_000 };
/** More objects than change within the time that one needs to get everything back; whoever is beyond waits its turn. */
const objectsMax = 10_000;

type Account = { readonly left: number; readonly atMs: number };

/** What is left to every object on every target. */
export class Urgency {
  /** Those that changed, the one that did so last at the end. */
  readonly #accounts = new Map<string, Account>();

  /** Whether an object may be urgent now. */
  has(key: string, nowMs: number): boolean {
    const account = this.#accounts.get(key);
    if (account === undefined) return this.#accounts.size < objectsMax || this.#forget(nowMs);
    return nowMs - account.atMs >= budget.quietMs && leftOf(account, nowMs) >= 1;
  }

  /** It changed, and was urgent or had to wait. */
  note(key: string, nowMs: number, wasUrgent: boolean): void {
    const account = this.#accounts.get(key);
    this.#accounts.delete(key);
    if (!this.#forget(nowMs)) return;
    const left = account === undefined ? budget.most : leftOf(account, nowMs);
    this.#accounts.set(key, { left: wasUrgent ? left - 1 : left, atMs: nowMs });
  }

  /** Drops those that got everything back, and tells whether there is room. */
  #forget(nowMs: number): boolean {
    for (const [key, { atMs }] of this.#accounts) {
      if (nowMs - atMs < budget.most * budget.refillMs) break;
      this.#accounts.delete(key);
    }
    return this.#accounts.size < objectsMax;
  }
}

const leftOf = ({ left, atMs }: Account, nowMs: number): number =>
  Math.min(budget.most, left + (nowMs - atMs) / budget.refillMs);
