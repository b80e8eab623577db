import { get, type ChatSession } from '../lib/api';
import { useResource } from '../lib/use';

/** useWaiting counts the conversations whose reply waits for the user, other than the one that is open. */
export function useWaiting(known: boolean, open: string): number {
  const list = useResource<{ sessions: ChatSession[] }>(known ? 'waiting' : null, (s) => get('/api/sessions?limit=50', s), 5000);
  return (list.data?.sessions ?? []).filter((s) => s.waiting && s.id !== open).length;
}
