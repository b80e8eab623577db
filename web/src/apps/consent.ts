import { RpcError } from './host';

/** ConsentRequest is a request of an app that needs the user's consent. */
export interface ConsentRequest {
  /** Unique, so that the dialog of one request is not reused for the next. */
  id: number;
  title: string;
  text: string;
  args?: unknown;
  confirmLabel: string;
  answer: (accepted: boolean) => void;
}

/** maxRefusals is the number of consecutive refusals after which an app's requests are rejected. */
const maxRefusals = 3;

/** ConsentPrompts shows the consent requests of one app, one at a time. */
export class ConsentPrompts {
  private open = false;
  private refusals = 0;
  private id = 0;

  constructor(private show: (q: ConsentRequest | null) => void) {}

  /** ask resolves to the user's answer. A request that the app cancels counts as refused. */
  ask(q: Omit<ConsentRequest, 'id' | 'answer'>, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) throw new RpcError('the request was cancelled');
    if (this.open) throw new RpcError('the user has another question to answer');
    if (this.refusals >= maxRefusals) throw new RpcError('the user has refused too often');
    this.open = true;
    return new Promise((resolve) => {
      const answer = (accepted: boolean) => {
        signal.removeEventListener('abort', onAbort); // or it would close the next request
        this.open = false;
        this.refusals = accepted ? 0 : this.refusals + 1;
        this.show(null);
        resolve(accepted);
      };
      const onAbort = () => answer(false);
      signal.addEventListener('abort', onAbort, { once: true });
      this.show({ ...q, id: ++this.id, answer });
    });
  }
}
