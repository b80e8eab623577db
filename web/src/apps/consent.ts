import { Refusal } from './host';

/** Question is what an app asks the user. */
export interface Question {
  /** Another for each question: what shows one must not go on with the next. */
  id: number;
  title: string;
  text: string;
  args?: unknown;
  yes: string;
  answer: (yes: boolean) => void;
}

/** maxRefusals is how often the user refuses before an app may ask no more. */
const maxRefusals = 3;

/** Consents are the questions of one app, one at a time. */
export class Consents {
  private open = false;
  private refusals = 0;
  private id = 0;

  constructor(private show: (q: Question | null) => void) {}

  /** ask returns what the user answers. A question that the app cancels counts as refused. */
  ask(q: Omit<Question, 'id' | 'answer'>, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) throw new Refusal('the request was cancelled');
    if (this.open) throw new Refusal('the user has another question to answer');
    if (this.refusals >= maxRefusals) throw new Refusal('the user has refused too often');
    this.open = true;
    return new Promise((done) => {
      const answer = (yes: boolean) => {
        signal.removeEventListener('abort', cancelled); // or it would close the next question
        this.open = false;
        this.refusals = yes ? 0 : this.refusals + 1;
        this.show(null);
        done(yes);
      };
      const cancelled = () => answer(false);
      signal.addEventListener('abort', cancelled, { once: true });
      this.show({ ...q, id: ++this.id, answer });
    });
  }
}
